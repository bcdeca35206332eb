"""Who watches the work of this process: where progress goes, and whether the work was interrupted.

Prefect passes references only, so a step cannot be handed a progress bar. The command line installs its own
here; on a remote worker nobody does and steps stay silent. Python interrupts the main thread only, so a step
in another thread learns of Ctrl-C at its next report.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from flows.errors import Interrupted
from tasks.progress import Progress, silent

Opener = Callable[[str, str], AbstractContextManager[Progress]]
"""Makes a progress display from a title and the unit that is counted."""

_interrupted = threading.Event()


def _nobody(title: str, unit: str) -> AbstractContextManager[Progress]:
    return nullcontext(silent)


_opener: Opener = _nobody


@contextmanager
def watching(opener: Opener) -> Iterator[None]:
    """Send the progress of every step of this process to `opener` for the duration of the block."""
    global _opener
    before, _opener = _opener, opener
    _interrupted.clear()
    try:
        yield
    except KeyboardInterrupt:
        interrupt()
        raise
    finally:
        _opener = before


def interrupt() -> None:
    """Ask the steps that run in other threads to stop at their next report."""
    _interrupted.set()


@contextmanager
def progress(title: str, unit: str) -> Iterator[Progress]:
    """A progress callback for one step, shown to whoever watches.

    The callback raises `Interrupted` once the process was interrupted.
    """
    with _opener(title, unit) as shown:

        def report(done: int, total: int, **figures: float) -> None:
            if _interrupted.is_set():
                raise Interrupted("interrupted; nothing half-done was published")
            shown(done, total, **figures)

        yield report
