"""The order of a replay: predictions at starts, feedback at completions, and exact rules for ties (LARC 5).

At one timestamp all predictions come before any feedback; jobs that start together are one group; all jobs
that complete together are one batch. Within a group or batch the stable id decides.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.replay.jobs import Job


@dataclass(frozen=True)
class Event:
    """Jobs that start, or complete, at one timestamp, in the stable order of their ids."""

    time_us: int
    kind: Literal["predict", "learn"]
    jobs: tuple[Job, ...]


def events(jobs: Iterable[Job]) -> list[Event]:
    """Every job's prediction and feedback, in the order in which they happen."""
    starting: dict[int, list[Job]] = defaultdict(list)
    completing: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        starting[job.started_us].append(job)
        completing[job.completed_us].append(job)
    found: list[Event] = []
    for time in sorted(starting.keys() | completing.keys()):
        if time in starting:
            found.append(Event(time, "predict", _ordered(starting[time])))
        if time in completing:
            found.append(Event(time, "learn", _ordered(completing[time])))
    return found


def merged(happening: Sequence[Event]) -> list[Event]:
    """The same events with successive predictions as one: nothing is learned between them.

    The time of a merged event is that of its last jobs.
    """
    found: list[Event] = []
    for event in happening:
        if found and event.kind == found[-1].kind == "predict":
            found[-1] = Event(event.time_us, "predict", found[-1].jobs + event.jobs)
        else:
            found.append(event)
    return found


def _ordered(jobs: Iterable[Job]) -> tuple[Job, ...]:
    return tuple(sorted(jobs, key=lambda job: job.order))
