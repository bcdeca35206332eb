"""An evaluation of skills as the report tells it: routing, what is written by interface, interventions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import number, section
from flows.report.scores import Score, score

_FAMILIES = {"standalone": "no skill attached", "external-skill": "skill attached"}
_ORDER = ("none", "global", "positional", "combined", "train", "disjoint")
_RANGES = {"train": "seen in training", "disjoint": "beyond those of training"}


@dataclass(frozen=True)
class Routing:
    """How often the operation was chosen right, and both operands read right, in a range of operands."""

    range: str
    tasks: float | None
    operation: Score
    operands: Score


@dataclass(frozen=True)
class Answers:
    """What was written by one interface in one range; `whole` is strict equality of the whole output.

    `declared` figures are those with the length that the result declares, the others with the learned stop.
    """

    family: str
    interface: str
    range: str
    tasks: float | None
    whole: Score
    stop: Score
    declared_whole: Score
    nll: Score


@dataclass(frozen=True)
class Intervention:
    """What outputs do when the returned value was substituted by another one, or by an equal one."""

    interface: str
    range: str
    differs: bool
    tasks: float | None
    follows: Score
    stays: Score


@dataclass(frozen=True)
class Skills:
    """An evaluation of skills in rows."""

    routing: Sequence[Routing]
    answers: Sequence[Answers]
    interventions: Sequence[Intervention]


def skills(summary: Mapping[str, Any]) -> Skills | None:
    """The evaluation of skills in a summary, None if it has none."""
    given = section(summary, "skills")
    families = section(given, "families")
    routing = [
        Routing(
            _RANGES.get(range_, range_),
            number(found.get("n")),
            score(found.get("operation")),
            score(found.get("operands")),
        )
        for range_, found in _sections(section(given, "routing"))
    ]
    answers = [
        Answers(
            name,
            interface,
            _RANGES.get(range_, range_),
            number(found.get("n")),
            score(section(found, "learned").get("whole_output")),
            score(section(found, "learned").get("stop")),
            score(section(found, "declared").get("whole_output")),
            score(found.get("nll")),
        )
        for family, name in _FAMILIES.items()
        for interface, ranges in _sections(section(families, family))
        for range_, found in _sections(ranges)
    ]
    interventions = [
        Intervention(
            interface,
            _RANGES.get(range_, range_),
            stratum == "differs",
            number(section(found, stratum).get("n")),
            score(section(found, stratum).get("follows")),
            score(section(found, stratum).get("stays")),
        )
        for interface, ranges in _sections(section(families, "intervention"))
        for range_, found in _sections(ranges)
        for stratum in ("differs", "equal")
        if number(section(found, stratum).get("n"))
    ]
    return Skills(routing, answers, interventions) if routing or answers or interventions else None


def _sections(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The nested objects of an object: known names in reading order, then the others by name."""
    names = sorted(values, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    return ((name, values[name]) for name in names if isinstance(values[name], Mapping))
