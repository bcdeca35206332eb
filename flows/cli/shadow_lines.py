"""What is said of one shadow of a store, for people and for machines."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flows.cli.anneal_figures import alpha_lines
from flows.formatting import counted

if TYPE_CHECKING:
    from store import Row, Store

_BY_LAYER = ("layers", "alphas", "norms")
_PURPOSES = ("selection", "selection_naive", "guard", "guard_naive")
_FIGURES = ("gain", "rise", "drift")
_LARGEST = 1e12


def shadow_row(store: "Store", ref: str) -> "Row":
    """What the store knows of a shadow that was just published or found, or that is attached.

    Raises `BadPayload` where it is not there, and where its record says other things than shadows do.
    """
    from store import Ref
    from tasks.errors import BadPayload

    wanted = Ref.parse(ref)
    row = store.catalog().get(wanted.version)
    if row is None or row.ref != wanted:
        raise BadPayload(f"{store.url} has no {ref}, though it is named; `cellar verify` looks for damage")
    return checked(row)


def checked(row: "Row") -> "Row":
    """The row of a shadow; raises `BadPayload` where its record is not that of a shadow."""
    from tasks.errors import BadPayload
    from tasks.shadows.params import MOST_ALPHA

    facts, host = row.facts, row.provenance.get("host", "")
    columns_ = [facts.get(name) for name in _BY_LAYER]
    purposes = [facts.get(name) for name in _PURPOSES if name in facts]
    fits = (
        all(isinstance(column, list) and all(map(_is_number, column)) for column in columns_)
        and all(0 <= alpha <= MOST_ALPHA for alpha in facts["alphas"])
        and len({len(column) for column in columns_ if isinstance(column, list)}) == 1
        and all(isinstance(one, Mapping) and all(map(_is_number, map(one.get, _FIGURES))) for one in purposes)
        and len(purposes) in (0, len(_PURPOSES))
        and type(facts.get("chunks", 0)) is int
        and isinstance(facts.get("stopped", ""), str)
        and isinstance(host, str)
    )
    if not fits:
        raise BadPayload(f"{row.ref} does not say what a shadow says of itself; write it again")
    return row


def shadow_record(row: "Row") -> dict[str, Any]:
    """A shadow for machines."""
    return {"shadow": str(row.ref), "host": row.provenance.get("host", ""), **dict(row.facts)}


def shadow_in_short(row: "Row") -> tuple[str, str]:
    """How many layers a shadow has, and their alphas."""
    layers, alphas = row.facts["layers"], row.facts["alphas"]
    return counted(len(layers), "layer"), "alpha " + " ".join(f"{alpha:.2f}" for alpha in alphas)


def shadow_lines(row: "Row") -> list[str]:
    """A shadow for people: what it learned, what its search found, and its layers."""
    facts = row.facts
    lines = [f"shadow   {row.ref}", f"host     {row.provenance.get('host', '')}"]
    if "chunks" in facts:
        lines.append(f"learned  {counted(facts['chunks'], 'chunk')}")
    if facts.get("stopped"):
        lines.append(f"stopped  {facts['stopped']}")
    for purpose in _PURPOSES[::2]:
        if purpose in facts:
            lines.append(_figures(purpose, facts[purpose]))
            lines.append(_figures("  full strength", facts[f"{purpose}_naive"]))
    if facts.get("fell_back"):
        lines.append("kept     nothing: the guard text showed no gain that is worth its harm")
    columns_ = (facts[name] for name in _BY_LAYER)
    layers = [
        {"layer": layer, "alpha": alpha, "norm": norm} for layer, alpha, norm in zip(*columns_, strict=True)
    ]
    return [*lines, *alpha_lines(layers)]


def _figures(title: str, found: Mapping[str, float]) -> str:
    gain, rise, drift = (f"{found[name]:+.4f}" for name in _FIGURES)
    return f"{title:<15} gain {gain}  rise {rise}  drift {drift} nats per token"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST
