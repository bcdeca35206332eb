"""A thread pool without threads, so that a race that a test schedules is the same race every time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest


class InlineExecutor(Executor):
    """Runs what is submitted at once, on the calling thread."""

    def __init__(self, max_workers: int | None = None, **kwargs: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed on, as a pool does
            future.set_exception(error)
        return future


def without_threads(patch: pytest.MonkeyPatch) -> None:
    """Let all modules of the store work on the threads that call them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("store.") and hasattr(module, "ThreadPoolExecutor"):
            patch.setattr(module, "ThreadPoolExecutor", InlineExecutor)
