"""A storage whose clock the test moves on: what takes days is tested in milliseconds, by the real rules."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from store.backend import Backend, Body, ObjectInfo

NO_TIME = timedelta(0)


@dataclass
class Clock:
    """When, in real time, the storage's clock was put forward, and by how much.

    What was written in the real second of a leap on a server that dates in seconds could belong to either
    side, so the backends that share a clock remember in `written` what they wrote themselves.
    """

    leaps: list[tuple[datetime, timedelta]] = field(default_factory=list)
    written: dict[str, timedelta] = field(default_factory=dict)

    def forward(self, backend: Backend, **much: float) -> None:
        """Let time pass on `backend`, for example `forward(backend, days=8)`."""
        inner = backend.inner if isinstance(backend, ClockedBackend) else backend
        self.leaps.append((inner.now(), timedelta(**much)))

    def forward_for_all(self, backend: Backend, **much: float) -> None:
        """Let time pass for other processes too, once the second of the last write is over."""
        inner = backend.inner if isinstance(backend, ClockedBackend) else backend
        newest = max(item.modified for item in inner.list(""))
        while inner.now() <= newest:
            time.sleep(0.02)  # polling another clock: there is nothing to wait on
        self.forward(backend, **much)
        self.written.clear()  # other processes may write the same keys from now on

    def to_json(self) -> str:
        """What another process needs to see the same clock."""
        return json.dumps([[at.isoformat(), by.total_seconds()] for at, by in self.leaps])

    @classmethod
    def from_json(cls, text: str) -> Clock:
        """The clock of `to_json`."""
        return cls([(datetime.fromisoformat(at), timedelta(seconds=by)) for at, by in json.loads(text)])

    def ahead(self, since: datetime | None = None) -> timedelta:
        """How far the clock is ahead now, or was at the real time `since`."""
        return sum((by for at, by in self.leaps if since is None or at <= since), NO_TIME)


class ClockedBackend:
    """The storage `inner` under a clock that several backends may share; everything else is real."""

    def __init__(self, inner: Backend, clock: Clock) -> None:
        self.inner = inner
        self.clock = clock
        self.url = inner.url

    def now(self) -> datetime:
        return self.inner.now() + self.clock.ahead()

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
        self._note(key)

    def create(self, key: str, body: Body) -> None:
        self.inner.create(key, body)
        self._note(key)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        self.inner.replace(key, body, token=token)
        self._note(key)

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def _note(self, key: str) -> None:
        self.clock.written[key] = self.clock.ahead()

    def _dated(self, found: ObjectInfo) -> ObjectInfo:
        ahead = self.clock.written.get(found.key)
        if ahead is None:
            ahead = self.clock.ahead(found.modified)
        return ObjectInfo(found.key, found.size, found.modified + ahead)
