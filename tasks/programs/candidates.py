"""Candidate programs: short public texts over a handful of primitives, and what they compute."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Value = int | tuple[int, ...]
"""An input or output: a number of the arithmetic family, or a list of the other."""


class Family(StrEnum):
    """The two kinds of programs."""

    ARITHMETIC = "arithmetic"
    LIST = "list"


@dataclass(frozen=True)
class Step:
    """A primitive with its arguments."""

    primitive: str
    arguments: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.primitive, *map(str, self.arguments)])


@dataclass(frozen=True)
class Candidate:
    """A complete program: its steps, applied from left to right."""

    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """The program as prompts and answers write it."""
        return ", ".join(map(str, self.steps))


_NUMBERS: Mapping[str, Callable[..., int]] = {
    "mul": lambda value, factor: value * factor,
    "add": lambda value, term: value + term,
    "clip": lambda value, low, high: min(max(value, low), high),
}
_LISTS: Mapping[str, Callable[..., tuple[int, ...]]] = {
    "filter_min": lambda value, least: tuple(entry for entry in value if entry >= least),
    "take": lambda value, limit: value[:limit],
    "sort": lambda value: tuple(sorted(value)),
    "append": lambda value, *suffix: (*value, *suffix),
}


def execute(candidate: Candidate, value: Value) -> Value:
    """What a program makes of an input.

    Raises `KeyError` for a primitive that its input's family has not.
    """
    primitives: Mapping[str, Callable[..., Value]] = _NUMBERS if isinstance(value, int) else _LISTS
    for step in candidate.steps:
        value = primitives[step.primitive](value, *step.arguments)
    return value


def error_fractions(
    candidates: Sequence[Candidate], target: Candidate, inputs: Sequence[Value]
) -> tuple[float, ...]:
    """For each candidate the share of inputs on which its output is not the target's."""
    wanted = [execute(target, value) for value in inputs]
    return tuple(
        sum(execute(one, value) != output for value, output in zip(inputs, wanted, strict=True)) / len(inputs)
        for one in candidates
    )
