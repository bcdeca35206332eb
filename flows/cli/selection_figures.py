"""Evaluating episodic program selection from the command line, and its figures for people."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns, count, number

if TYPE_CHECKING:
    from flows.params import Params
    from store import Store


def evaluate_selection(
    params: "Params", session: Session, out: Path, *, check: "Callable[[Store], object]"
) -> None:
    """Evaluate the slow states of some parameters, train what is missing, and write selection.json."""
    from flows.settings import make_folder

    make_folder(out, "--out")
    with orchestration(session, session.settings, check=check) as settings:
        from flows.evaluate_larc import evaluate_larc as flow

        made = flow(params, settings)
    show_published(session, made, out, SELECTION)


def training_lines(trained: Sequence[dict[str, Any]]) -> list[str]:
    """Slow states and how their learning curves began and ended, for people."""
    rows: list[tuple[str, ...]] = [("residual", "updates", "reset", "", "keep", "")]
    for one in trained:
        listed = one["facts"].get("curve")
        curve = [point for point in listed if isinstance(point, dict)] if isinstance(listed, list) else []
        first, last = (curve[0], curve[-1]) if curve else ({}, {})
        ends = (_percent(number(point.get(name))) for name in ("reset", "keep") for point in (first, last))
        rows.append((one["residual"], count(last.get("update")), *ends))
    return [*columns(rows), "expected errors of the learning curve's groups, at its first point and its last"]


def selection_lines(result: dict[str, Any]) -> list[str]:
    """Errors by condition, gains with intervals, and the choice of an objective, for people."""
    rows: list[tuple[str, ...]] = [("", "state", "error", "", "greedy", "all right", "by seed")]
    for arm, cells in result["conditions"].items():
        for cell, found in cells.items():
            seeds = " ".join(_percent(value) for value in found["by_seed"].values())
            greedy, right = (_percent(found[name]["value"]) for name in ("greedy_error", "all_right"))
            rows.append((arm, cell, *_ranged(found["error"]), greedy, right, seeds))
    gains: list[tuple[str, ...]] = [("gain", "points", "", "material")]
    for name, found in result["contrasts"].items():
        gains.append((name, *_ranged(found), "yes" if found["material"] else "no"))
    chosen = result["selection"]
    worst = ", ".join(f"{arm} {_percent(value)}" for arm, value in chosen["worst_seed"].items())
    return [
        f"{result['episodes']} episodes of {result['groups']} groups; errors and gains in percent",
        *columns(rows),
        "",
        *columns(gains),
        "",
        f"worst seed's smaller gain: {worst}",
        f"eligible: {', '.join(chosen['eligible']) or 'none'}; selected: {chosen['selected'] or 'none'}",
    ]


def _ranged(figure: dict[str, Any]) -> tuple[str, str]:
    return _percent(figure["value"]), f"[{_percent(figure['low'])}, {_percent(figure['high'])}]"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _page(result: dict[str, Any], out: Path) -> Path:
    from flows.report.selection import write_selection_page

    return write_selection_page(result, out)


SELECTION = Figures("selection.json", "contrasts", selection_lines, _page)
