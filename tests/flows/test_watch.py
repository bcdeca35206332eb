"""Progress reaches whoever watches; an interrupted process stops its other threads at their next report."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

from flows import watch
from flows.errors import Interrupted
from tasks.progress import Progress


def test_nobody_watches_by_default() -> None:
    with watch.progress("codec", "updates") as report:
        report(1, 2, loss=0.5)


def test_progress_reaches_the_watcher_from_any_thread() -> None:
    seen: list[tuple[object, ...]] = []

    @contextmanager
    def opener(title: str, unit: str) -> Iterator[Progress]:
        def show(done: int, total: int, **figures: float) -> None:
            seen.append((title, unit, done, total, figures))

        yield show

    def step() -> None:
        with watch.progress("shard-01", "documents") as report:
            report(1, 2, loss=0.5)

    with watch.watching(opener), ThreadPoolExecutor(1) as pool:
        pool.submit(step).result()
    step()
    assert seen == [("shard-01", "documents", 1, 2, {"loss": 0.5})]


def test_ctrl_c_in_the_main_thread_stops_steps_in_other_threads() -> None:
    started, interrupted = Event(), Event()

    def step() -> None:
        with watch.progress("shard", "documents") as report:
            report(0, 2)
            started.set()
            assert interrupted.wait(10)
            report(1, 2)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(step)
        assert started.wait(10)
        with pytest.raises(KeyboardInterrupt), watch.watching(watch._nobody):
            raise KeyboardInterrupt
        interrupted.set()
        with pytest.raises(Interrupted):
            future.result()
    with watch.watching(watch._nobody), watch.progress("next run", "documents") as report:
        report(1, 1)
