"""Who watches the work of this process: where progress goes, and whether the work was interrupted.

Prefect passes references only, so a step cannot be handed a progress bar. The command line installs its own
here; on a remote worker nobody does and steps stay silent. Python interrupts the main thread only, so a step
in another thread learns of Ctrl-C at its next report.
"""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from flows.errors import Interrupted
from tasks.progress import Progress, silent

Opener = Callable[[str, str], AbstractContextManager[Progress]]
"""Makes a progress display from a title and the unit that is counted."""

Announcer = Callable[[str, float], None]
"""Told the name of a stage that ended and its seconds."""

_interrupted = threading.Event()


def _nobody(title: str, unit: str) -> AbstractContextManager[Progress]:
    return nullcontext(silent)


def _unheard(stage: str, seconds: float) -> None:
    pass


_opener: Opener = _nobody
_announcer: Announcer = _unheard


@contextmanager
def watching(opener: Opener, announcer: Announcer = _unheard) -> Iterator[None]:
    """Send the progress of every step of this process to `opener`, and ended stages to `announcer`."""
    global _opener, _announcer
    before = _opener, _announcer
    _opener, _announcer = opener, announcer
    _interrupted.clear()
    try:
        yield
    except KeyboardInterrupt:
        interrupt()
        raise
    finally:
        _opener, _announcer = before


def interrupt() -> None:
    """Ask the steps that run in other threads and in worker processes to stop at their next report."""
    _interrupted.set()
    for worker in multiprocessing.active_children():
        worker.terminate()


def stop_if_interrupted() -> None:
    """For steps that wait.

    Raises:
        Interrupted: the process was interrupted.
    """
    if _interrupted.is_set():
        raise Interrupted("interrupted; nothing half-done was published")


def announce(stage: str, seconds: float) -> None:
    """Tell whoever watches that a stage ended."""
    _announcer(stage, seconds)


@contextmanager
def progress(title: str, unit: str) -> Iterator[Progress]:
    """A progress callback for one step, shown to whoever watches.

    The callback raises `Interrupted` once the process was interrupted.
    """
    with _opener(title, unit) as shown:

        def report(done: int, total: int, **figures: float) -> None:
            stop_if_interrupted()
            shown(done, total, **figures)

        yield report
