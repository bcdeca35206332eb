"""An imitation of a store as it was after one of its log entries; what is written to it is kept aside."""

from __future__ import annotations

import re
from collections.abc import Iterator

from store.backend import Backend, Body, ObjectInfo
from store.backend.read_only import ReadOnlyBackend
from store.entry import is_entry
from store.errors import KeyMissing
from store.format import CHECKPOINT_PREFIX, log_key

_CHECKPOINT = re.compile(re.escape(CHECKPOINT_PREFIX) + r"(\d{20})-[0-9a-f]{64}\.json")


def sequence_of(key: str) -> int:
    """Return the number of the entry that a checkpoint is about, 0 for any other key."""
    found = _CHECKPOINT.fullmatch(key)
    return 10**20 - 1 - int(found[1]) if found else 0


class PastBackend(ReadOnlyBackend):
    """What entries after `sequence` and checkpoints after `base` added is hidden."""

    def __init__(self, backend: Backend, sequence: int, base: int) -> None:
        super().__init__(backend)
        self._sequence = sequence
        self._base = base
        self.written: dict[str, bytes] = {}

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key in self.written:
            return self.written[key][offset : None if length is None else offset + length]
        self._refuse_hidden(key)
        return super().read(key, offset=offset, length=length)

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        self._refuse_hidden(key)
        return super().read_with_token(key)

    def info(self, key: str) -> ObjectInfo | None:
        return None if self._is_hidden(key) else super().info(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return (item for item in super().list(prefix, after=after) if not self._is_hidden(item.key))

    def put(self, key: str, body: Body) -> None:
        self.written[key] = bytes(body)

    def _is_hidden(self, key: str) -> bool:
        return sequence_of(key) > self._base or (is_entry(key) and key > log_key(self._sequence))

    def _refuse_hidden(self, key: str) -> None:
        if self._is_hidden(key):
            raise KeyMissing(f"{key} does not exist yet")
