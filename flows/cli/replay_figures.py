"""The figures of a replay of CI feedback for people: all paths in one table, differences, updates."""

from pathlib import Path
from typing import Any

from flows.cli.published import Figures, ranged
from flows.formatting import columns

NAMES = {
    "reset": "reset (P0 M0)",
    "reset_memory": "reset, cases (P0 M1)",
    "keep": "keep (P1 M0)",
    "keep_memory": "keep, cases (P1 M1)",
    "permuted": "permuted labels",
    "original": "original",
    "calibrated": "original, calibrated",
    "carry_tenth": "carry, tenth step",
    "latest_full": "latest, full step",
    "latest_tenth": "latest, tenth step",
    "controller": "controller",
    "hedge4": "HEDGE4",
    "hedge5": "HEDGE5",
}
"""Paths as people read them; keep with cases is CARRY with the full step."""


def replay_lines(result: dict[str, Any]) -> list[str]:
    """Half-Brier of every path by three weightings, differences with intervals, and what updates did."""
    jobs = result["jobs"]
    lines = [_counted("training", jobs["training"]), _counted("audit", jobs["audit"])]
    if jobs["excluded"]:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in jobs["excluded"].items())
        lines.append(f"left out of {jobs['rows']:,} rows: {reasons}")
    rows: list[tuple[str, ...]] = [("half-Brier", "repositories", "commits", "jobs", "calibration error")]
    for path, found in _in_order(result["replay"]):
        figures = (found["nested"], found["commits"], found["jobs"], found["calibration_error"])
        rows.append((NAMES.get(path, path), *(f"{figure:.4f}" for figure in figures)))
    lines += ["", *columns(rows)]
    if result["differences"]:
        found = [(name, ranged(one), " - ".join(one["paths"])) for name, one in result["differences"].items()]
        lines += ["", *columns([("what is gained", "", ""), *found])]
    if result["updates"]:
        lines += ["", *columns([_HEAD, *(_updates(path, one) for path, one in _in_order(result["updates"]))])]
    return lines


_HEAD = ("same batch, nats", "before", "after", "rose", "step", "distance", "decisions")


def _in_order(by_path: dict[str, Any]) -> list[tuple[str, Any]]:
    """Paths in the order of their names here, unknown ones last."""
    order = list(NAMES)
    return sorted(by_path.items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order))


def _updates(path: str, found: dict[str, Any]) -> tuple[str, ...]:
    figures = (found[name] for name in ("before", "after", "rose", "update_norm", "distance"))
    decided = ", ".join(f"{count:,} {decision}" for decision, count in found["decisions"].items())
    return (NAMES.get(path, path), *("-" if one is None else f"{one:.4f}" for one in figures), decided)


def _counted(name: str, found: dict[str, Any]) -> str:
    labels = ", ".join(f"{count:,} {label}" for label, count in found["labels"].items())
    where = f"{found['commits']:,} commits of {found['repositories']:,} repositories"
    return f"{name}: {found['jobs']:,} jobs of {where}: {labels}"


def _page(result: dict[str, Any], out: Path) -> Path:
    from flows.report.replay import write_replay_page

    return write_replay_page(result, out)


REPLAY = Figures("replay.json", "replay", replay_lines, _page)
