"""How long computations report their progress."""

from typing import Protocol


class Progress(Protocol):
    """Called with the work done so far, the work in all, and the figures worth showing beside the bar."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""


def turn_of(progress: Progress, turn: int, turns: int) -> Progress:
    """What reports one of `turns` equally long parts of a work, numbered from 0, as a part of the whole."""

    def report(done: int, total: int, **figures: float) -> None:
        progress(turn * total + done, turns * total, **figures)

    return report
