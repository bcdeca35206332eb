"""Seconds of stages, remembered by what they published: a run that finds the work done did not do it."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flows.pins import Pin
from flows.settings import make_folder
from store import Store, canonical_json
from store.format import sha256
from tasks.progress import Progress

_FILE = "seconds.json"
_KEPT = 100
"""Runs of one stage that are remembered; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The seconds that a run took for a stage; `documents` says for how many, None for all there were.

    What a flow on a host counts instead: slow states, predictions, chunks of a text, alphas.
    """

    seconds: float
    documents: int | None = None


@dataclass(slots=True)
class Work:
    """What became of a stage that is being timed, to be filled in by who does its work."""

    outcome: Sequence[str] = ()
    documents: int | None = None

    def counted(self, progress: Progress) -> Progress:
        """A progress that counts as `documents` what this run does, which is less where work was kept.

        What it is told first counts as kept: what goes on with such work says so before it does more.
        """
        first: int | None = None

        def report(done: int, total: int, **figures: float) -> None:
            nonlocal first
            first = done if first is None else first
            self.documents = done - first
            progress(done, total, **figures)

        return report


def work_seconds(folder: Path, stage: str, pins: Sequence[Pin], spent: float, *, found: bool) -> float | None:
    """Seconds of the run that did the work of a stage, whose outcome is in `pins`.

    That is the present run with its `spent` seconds, which are remembered in `folder`, unless it `found` the
    work in the store; then the run that is remembered for this outcome, None if there is none.
    """
    key = f"{stage} {_digest([pin.model_dump(mode='json') for pin in pins])}"
    if not found:
        _remember(folder, key, spent)
    return _read(folder / _FILE).get(key)


@contextmanager
def timed(folder: Path, store: Store, stage: str) -> Iterator[Work]:
    """Time a stage and remember the seconds in `folder`; what commits nothing found its work done."""
    began, tip, work = time.monotonic(), store.tip().sequence, Work()
    yield work
    if store.tip().sequence != tip and work.documents != 0:
        amount = "" if work.documents is None else f" {work.documents}"
        _remember(folder, f"{stage}{amount} {_digest(list(work.outcome))}", time.monotonic() - began)


def remembered(folder: Path) -> dict[str, list[Spent]]:
    """All remembered runs that did the work of a stage, by stage."""
    found: dict[str, list[Spent]] = {}
    for key, seconds in _read(folder / _FILE).items():
        stage, *amount = key.split(" ")[:-1] or [key]
        if all(text.isdecimal() for text in amount):
            found.setdefault(stage, []).append(Spent(seconds, int(amount[0]) if amount else None))
    return found


def _remember(folder: Path, key: str, spent: float) -> None:
    path = make_folder(folder, "CELLAR_WORK_DIR") / _FILE
    known = _read(path)
    known.pop(key, None)
    known[key] = spent
    stage = key.partition(" ")[0]
    for old in [name for name in known if name.partition(" ")[0] == stage][:-_KEPT]:
        del known[old]
    partial = path.with_name(f"{_FILE}.{os.getpid()}.partial")
    partial.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def _digest(outcome: object) -> str:
    return sha256(canonical_json(outcome))


def _read(path: Path) -> dict[str, float]:
    """What is remembered; a file that is missing or damaged only loses figures."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: float(value) for key, value in known.items() if isinstance(value, int | float)}
