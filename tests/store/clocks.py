"""A storage whose clock the test moves on: what takes days is tested in milliseconds, by the real rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from store.backend import Backend, Body, ObjectInfo


@dataclass
class Clock:
    """How far the storage's clock is ahead of the real one, now and when each object was last written."""

    ahead: timedelta = timedelta(0)
    written: dict[str, timedelta] = field(default_factory=dict)

    def forward(self, **much: float) -> None:
        """Let time pass: `forward(days=8)`."""
        self.ahead += timedelta(**much)


class ClockedBackend:
    """The storage `inner` under a clock that several backends may share; everything else is real."""

    def __init__(self, inner: Backend, clock: Clock) -> None:
        self.inner = inner
        self.clock = clock
        self.url = inner.url

    def now(self) -> datetime:
        return self.inner.now() + self.clock.ahead

    def info(self, key: str) -> ObjectInfo | None:
        found = self.inner.info(key)
        return found and self._dated(found)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return map(self._dated, self.inner.list(prefix, after=after))

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return self.inner.read(key, offset=offset, length=length)

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self.inner.read_with_token(key)

    def put(self, key: str, body: Body) -> None:
        self.inner.put(key, body)
        self.clock.written[key] = self.clock.ahead

    def create(self, key: str, body: Body) -> None:
        self.inner.create(key, body)
        self.clock.written[key] = self.clock.ahead

    def replace(self, key: str, body: Body, *, token: str) -> None:
        self.inner.replace(key, body, token=token)
        self.clock.written[key] = self.clock.ahead

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def _dated(self, found: ObjectInfo) -> ObjectInfo:
        ahead = self.clock.written.get(found.key, timedelta(0))
        return ObjectInfo(found.key, found.size, found.modified + ahead)
