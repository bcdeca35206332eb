"""How long computations report their progress."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Called with the work done so far, the work in all, and the figures worth showing beside the bar."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""


Display = Callable[[], AbstractContextManager[Progress]]
"""Begins to show a progress, for work of which it is not known whether it will be done."""


def unseen() -> AbstractContextManager[Progress]:
    """A display of nothing."""
    return nullcontext(silent)


def shown_by(progress: Progress) -> Display:
    """The display of a progress that is there already."""

    def begin() -> AbstractContextManager[Progress]:
        return nullcontext(progress)

    return begin


def part_of(progress: Progress, before: int, whole: int) -> Progress:
    """What reports a part of a work of `whole` units, `before` of which come earlier."""

    def report(done: int, total: int, **figures: float) -> None:
        progress(before + done, whole, **figures)

    return report


def turn_of(progress: Progress, turn: int, turns: int) -> Progress:
    """What reports one of `turns` equally long parts of a work, numbered from 0, as a part of the whole."""

    def report(done: int, total: int, **figures: float) -> None:
        progress(turn * total + done, turns * total, **figures)

    return report
