"""Row groups of large index files that lookups used last, kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

from store.manifest import Segment


class GroupCache:
    """Row groups that were decoded last, for lookups that come one by one. Safe to share between threads.

    One index file can be named by several commits, and its rows say of which one they are: what is kept is
    that of a file as one commit names it.
    """

    def __init__(self, max_bytes: int = 64 * 1024**2) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, int], pa.Table] = OrderedDict()
        self._size = 0

    def get(self, segment: Segment, group: int) -> pa.Table | None:
        """Return a row group that is kept."""
        key = segment.index, segment.commit, group
        with self._lock:
            table = self._kept.get(key)
            if table is not None:
                self._kept.move_to_end(key)
            return table

    def keep(self, segment: Segment, group: int, table: pa.Table) -> None:
        """Keep a row group until others need its space."""
        key = segment.index, segment.commit, group
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = table
            self._size += table.nbytes
            while self._size > self._max_bytes and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1].nbytes
