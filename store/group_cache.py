"""Row groups of large index files that lookups used last, kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa


class GroupCache:
    """Row groups that were decoded last, for lookups that come one by one. Safe to share between threads."""

    def __init__(self, max_bytes: int = 64 * 1024**2) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._size = 0

    def get(self, index: str, group: int) -> pa.Table | None:
        """Return a row group that is kept."""
        with self._lock:
            table = self._kept.get((index, group))
            if table is not None:
                self._kept.move_to_end((index, group))
            return table

    def keep(self, index: str, group: int, table: pa.Table) -> None:
        """Keep a row group until others need its space."""
        with self._lock:
            if (index, group) in self._kept:
                return
            self._kept[index, group] = table
            self._size += table.nbytes
            while self._size > self._max_bytes and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1].nbytes
