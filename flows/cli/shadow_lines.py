"""What is said of one shadow of a store, for people and for machines."""

from typing import TYPE_CHECKING, Any

from flows.cli.anneal_figures import alpha_lines
from flows.formatting import counted

if TYPE_CHECKING:
    from store import Row, Store


def shadow_row(store: "Store", ref: str) -> "Row":
    """What the store knows of a shadow that was just published or found."""
    from store import Ref

    row = store.catalog().get(Ref.parse(ref).version)
    assert row is not None
    return row


def shadow_record(row: "Row") -> dict[str, Any]:
    """A shadow for machines."""
    return {"shadow": str(row.ref), "host": row.provenance.get("host", ""), **dict(row.facts)}


def shadow_in_short(row: "Row") -> tuple[str, str]:
    """How many layers a shadow has, and their alphas."""
    layers, alphas = row.facts.get("layers") or [], row.facts.get("alphas") or []
    return counted(len(layers), "layer"), "alpha " + " ".join(f"{alpha:.2f}" for alpha in alphas)


def shadow_lines(row: "Row") -> list[str]:
    """A shadow for people: what it learned, what its search found, and its layers."""
    facts = row.facts
    lines = [f"shadow   {row.ref}", f"host     {row.provenance.get('host', '')}"]
    if "chunks" in facts:
        lines.append(f"learned  {counted(facts['chunks'], 'chunk')}")
    if facts.get("stopped"):
        lines.append(f"stopped  {facts['stopped']}")
    for purpose in ("selection", "guard"):
        if isinstance(found := facts.get(purpose), dict):
            lines.append(_figures(purpose, found))
            lines.append(_figures("  at alpha 1", facts[f"{purpose}_naive"]))
    if facts.get("fell_back"):
        lines.append("kept     nothing: the guard text showed no gain that is worth its harm")
    columns_ = (facts.get(name) or [] for name in ("layers", "alphas", "norms"))
    layers = [
        {"layer": layer, "alpha": alpha, "norm": norm} for layer, alpha, norm in zip(*columns_, strict=False)
    ]
    return [*lines, *alpha_lines(layers)]


def _figures(title: str, found: dict[str, float]) -> str:
    gain, rise, drift = (f"{found[name]:+.4f}" for name in ("gain", "rise", "drift"))
    return f"{title:<12} gain {gain}  rise {rise}  drift {drift} nats per token"
