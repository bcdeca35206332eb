"""A backend in memory, for tests that make thousands of stores; it passes the suite of every backend.

All views of one `Memory` see the same objects, as processes that share a bucket do. It also remembers every
write and delete in their order, so that a test can say what was true at any moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from store.backend import Body, ObjectInfo
from store.errors import KeyExists, KeyMissing, TokenMismatch


def _real_time() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Stored:
    """One object: its bytes, when it was written in the storage's clock, and at which moment."""

    body: bytes
    modified: datetime
    order: int


@dataclass(frozen=True, slots=True)
class Event:
    """A write of `body` under `key`, or a delete (None); `moment` orders all that happens to a `Memory`."""

    moment: int
    time: datetime
    client: str
    key: str
    body: bytes | None


@dataclass
class Memory:
    """What a bucket holds, its clock, and what happened to it."""

    clock: Callable[[], datetime] = _real_time
    objects: dict[str, Stored] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    moment: int = 0
    events: list[Event] = field(default_factory=list)

    def write(self, client: str, key: str, body: Body) -> None:
        """Store a copy of `body`; the caller holds the lock."""
        kept = bytes(body)
        self.objects[key] = Stored(kept, self.clock(), self.tick())
        self.events.append(Event(self.moment, self.clock(), client, key, kept))

    def remove(self, client: str, key: str) -> None:
        """Remove an object if it is there; the caller holds the lock."""
        if self.objects.pop(key, None) is not None:
            self.events.append(Event(self.tick(), self.clock(), client, key, None))

    def tick(self) -> int:
        """Return a moment after all that happened and before all that will."""
        with self.lock:
            self.moment += 1
            return self.moment


class MemoryBackend:
    """Objects in a `Memory`, as `client` sees them; usable from several threads."""

    def __init__(self, memory: Memory | None = None, client: str = "") -> None:
        self.memory = memory or Memory()
        self._client = client
        self.url = "memory:"

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        end = None if length is None else offset + length
        return self._get(key).body[offset:end]

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        stored = self._get(key)
        return stored.body, str(stored.order)

    def info(self, key: str) -> ObjectInfo | None:
        stored = self.memory.objects.get(key)
        return stored and ObjectInfo(key, len(stored.body), stored.modified)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        with self.memory.lock:
            found = [
                ObjectInfo(key, len(stored.body), stored.modified)
                for key, stored in self.memory.objects.items()
                if key.startswith(prefix) and key > after
            ]
        yield from sorted(found, key=lambda item: item.key)

    def put(self, key: str, body: Body) -> None:
        with self.memory.lock:
            self.memory.write(self._client, key, body)

    def create(self, key: str, body: Body) -> None:
        with self.memory.lock:
            if key in self.memory.objects:
                raise KeyExists(f"{key} already exists in {self.url}")
            self.memory.write(self._client, key, body)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        with self.memory.lock:
            if str(self._get(key).order) != token:
                raise TokenMismatch(f"{key} in {self.url} was changed by somebody else")
            self.memory.write(self._client, key, body)

    def delete(self, key: str) -> None:
        with self.memory.lock:
            self.memory.remove(self._client, key)

    def now(self) -> datetime:
        return self.memory.clock()

    def _get(self, key: str) -> Stored:
        stored = self.memory.objects.get(key)
        if stored is None:
            raise KeyMissing(f"{key} does not exist in {self.url}")
        return stored
