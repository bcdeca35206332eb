"""Seconds of stages, remembered by what they published: a run that finds the work done did not do it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from flows.pins import Pin
from flows.settings import make_folder
from store import canonical_json
from store.format import sha256

_FILE = "seconds.json"


def work_seconds(folder: Path, stage: str, pins: Sequence[Pin], spent: float, *, found: bool) -> float | None:
    """Seconds of the run that did the work of a stage, whose outcome is in `pins`.

    That is the present run with its `spent` seconds, which are remembered in `folder`, unless it `found` the
    work in the store; then the run that is remembered for this outcome, None if there is none.
    """
    known = _read(folder / _FILE)
    key = f"{stage} {sha256(canonical_json([pin.model_dump(mode='json') for pin in pins]))}"
    if not found:
        known[key] = spent
        partial = make_folder(folder, "CELLAR_WORK_DIR") / f"{_FILE}.{os.getpid()}.partial"
        partial.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        partial.replace(folder / _FILE)
    return known.get(key)


def remembered(folder: Path) -> dict[str, list[float]]:
    """Seconds of all remembered runs that did the work of a stage, by stage."""
    found: dict[str, list[float]] = {}
    for key, spent in _read(folder / _FILE).items():
        found.setdefault(key.partition(" ")[0], []).append(spent)
    return found


def _read(path: Path) -> dict[str, float]:
    """What is remembered; a file that is missing or damaged only loses figures."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: float(value) for key, value in known.items() if isinstance(value, int | float)}
