"""Progress that ends a computation, as Ctrl-C does."""

from tasks.progress import Progress


class Killed(Exception):
    """Stands for Ctrl-C."""


def stop_at(last: int, seen: list[int] | None = None) -> Progress:
    """What notes in `seen` what is done, and ends the computation once `last` is; -1 never does."""

    def watch(done: int, total: int, **figures: float) -> None:
        if seen is not None:
            seen.append(done)
        if done >= last > 0:
            raise Killed

    return watch
