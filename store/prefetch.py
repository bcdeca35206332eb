"""Doing the next pieces of work on other threads while the current result is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def prefetched(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    threads: int,
    weigh: Callable[[T], int],
    limit: int,
) -> Generator[R, None, None]:
    """Yield `work(item)` for every item, in order, computed ahead on up to `threads` threads.

    Items are taken as long as the weights of those whose results were not yet yielded stay below `limit`, but
    at least one is. The first error ends the iteration. However that ends, by closing or an interrupt too,
    the threads have ended afterwards.
    """
    waiting: deque[tuple[Future[R], int]] = deque()
    source = iter(items)
    following = next(source, None)
    load = 0
    pool = ThreadPoolExecutor(threads)
    try:
        while waiting or following is not None:
            while following is not None and (not waiting or load + weigh(following) <= limit):
                load += weigh(following)
                waiting.append((pool.submit(work, following), weigh(following)))
                following = next(source, None)
            future, weight = waiting.popleft()
            yield future.result()
            load -= weight
            del future  # or its result would live until the next one is yielded
    finally:
        pool.shutdown(cancel_futures=True)
