"""A figure with its interval, as far as a summary tells it."""

from collections.abc import Mapping
from dataclasses import dataclass

from flows.formatting import number


@dataclass(frozen=True)
class Score:
    """A figure with the bounds of its interval, which may be missing."""

    value: float | None
    bounds: tuple[float, float] | None


def score(figure: object) -> Score:
    """The score of a summary: `value`, `low` and `high`, or the value alone."""
    if not isinstance(figure, Mapping):
        return Score(number(figure), None)
    low, high = number(figure.get("low")), number(figure.get("high"))
    return Score(number(figure.get("value")), None if low is None or high is None else (low, high))
