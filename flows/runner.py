"""Which Prefect task runner spreads the shards of a build over this machine."""

import multiprocessing
import os
import signal
import threading
from typing import Any

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from flows import watch
from flows.settings import Settings


def task_runner(settings: Settings) -> TaskRunner[Any]:
    """Threads or processes, as many as `CELLAR_WORKERS` says; the results are the same bytes either way."""
    if settings.runner == "processes":
        return ProcessPoolTaskRunner(max_workers=settings.workers, initializer=follow_parent)
    return ThreadPoolTaskRunner(max_workers=settings.workers)


def follow_parent() -> None:
    """Make a worker process stop when its parent says so, and end when that dies: called once in each worker.

    Ctrl-C reaches a whole process group; the parent alone answers it (`flows.watch.interrupt`). A worker that
    lost its parent would wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: watch.interrupt())
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker process has a parent"
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
