"""Evaluating shadows beside retrieval from the command line, and the figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.anneal_needs import need_composition
from flows.cli.evidence import open_snapshot
from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params
    from store import Store

_DIGITS = {"nats": 3, "share": 3, "exact": 3}


def evaluate_composition(
    params: "Params", session: Session, names: list[str], snapshot: str | None, out: Path
) -> None:
    """Evaluate named shadows beside a snapshot, the one pinned last by default; write composition.json.

    What is missing in the store is said before anything is started.
    """
    from flows.settings import make_folder

    opened = open_snapshot(session, snapshot)
    make_folder(out, "--out")

    def check(store: "Store") -> None:
        need_composition(store, params, names, opened, session.warn)

    with orchestration(session, session.settings, check=check) as settings:
        from flows.evaluate_composition import evaluate_composition as flow

        made = flow(params, settings, names, opened.id)
    show_published(session, made, out, COMPOSITION)


def composition_lines(result: dict[str, Any]) -> list[str]:
    """Nats, right tokens and whole strings by condition, and paired differences, with intervals."""
    found = result["found"]
    lines = [
        f"{result['passages']} strings of snapshot {result['snapshot'][:12]}; the index finds the document "
        f"of {found['own']:.1%}, text that holds the string of {found['holds']:.1%}",
        *(f"shadow  {ref}" for ref in result["shadows"]),
    ]
    for part, one in result["composed"].items():
        lines += ["", f"{part}, {one['strings']} strings"]
        rows: list[tuple[str, ...]] = [("", "nats per token", "right tokens", "whole strings")]
        rows += [(name, *_figures(one["figures"][name])) for name in result["order"]]
        rows += [(f"{two['of']} - {two['less']}", *_figures(two, "+")) for two in one["differences"]]
        lines += columns(rows)
    return lines


def _figures(found: dict[str, Any], sign: str = "") -> tuple[str, ...]:
    return tuple(
        f"{one['value']:{sign}.{digits}f} [{one['low']:{sign}.{digits}f}, {one['high']:{sign}.{digits}f}]"
        for name, digits in _DIGITS.items()
        for one in (found[name],)
    )


COMPOSITION = Figures("composition.json", "composed", composition_lines)
