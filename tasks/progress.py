"""How long computations report their progress."""

from typing import Protocol


class Progress(Protocol):
    """Called with the work done so far, the work in all, and the figures worth showing beside the bar."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""
