"""A storage that misbehaves as real ones do, by a schedule, around any real backend.

Every fault is one that a correct storage shows to a correct client, and is answered with the errors that
`S3Backend` and `LocalBackend` turn it into. Where a fault cannot happen to a call (a cut answer of a
delete), the call passes. See `Fault` for each and where it comes from.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from store.backend import Backend, Body, ObjectInfo
from store.errors import (
    AccessDenied,
    AnswerLost,
    CellarError,
    ConflictError,
    Contended,
    DiskFull,
    IntegrityError,
    KeyExists,
    KeyMissing,
    StorageUnavailable,
    TokenMismatch,
    Unreachable,
)


class Fault(StrEnum):
    """What can happen to one call."""

    REFUSED = "refused"
    """No connection, nothing sent: a server that restarts, a full accept queue, a network that is down."""
    DROPPED = "dropped"
    """The connection breaks under the request (reset, read timeout); the storage did not do it."""
    LANDED = "landed"
    """The storage did it; the connection breaks before the answer arrives (reset, read timeout)."""
    LATE = "late"
    """The connection breaks, and the storage does it afterwards: the request waited in a server or proxy."""
    REPEATED = "repeated"
    """Done, and the answer was lost to a proxy or SDK that sent it again: 412 for one's own success."""
    CONFLICT = "conflict"
    """409: the storage met another conditional write of that key in flight. Nothing is done."""
    BUSY = "busy"
    """503 SlowDown: a rate limit of the bucket. Nothing is done."""
    FAILED = "failed"
    """500 before the storage did anything."""
    FAILED_AFTER = "failed-after"
    """500 after the storage did it, as a gateway says whose back end answered too late."""
    FULL = "full"
    """ENOSPC of a folder, 507 of a bucket with a quota. Nothing is done."""
    DENIED = "denied"
    """403: credentials or a policy changed under a running process. Nothing is done."""
    SHORT = "short"
    """A read returns fewer bytes than the object has: a file cut by a crash, a proxy's truncated cache."""
    FLIPPED = "flipped"
    """One bit of what a read returns is wrong: memory or a cable without ECC, a disk that decays."""
    GARBLED = "garbled"
    """One bit of what a write sends is wrong when it arrives: the storage compares checksums and refuses."""
    STALE = "stale"
    """A listing lacks the objects that were written last: a storage with eventually consistent listings."""
    GAP = "gap"
    """A listing lacks an object but shows a newer one: both were written while the directory was read."""
    GHOST = "ghost"
    """A listing shows objects that were deleted a moment ago."""
    DELAYED = "delayed"
    """Others get ahead of this call."""
    KILLED = "killed"
    """The process dies before it sends the request."""
    KILLED_AFTER = "killed-after"
    """The process dies after the storage did it, before it reads the answer."""
    KILLED_LATE = "killed-late"
    """The process dies, and its last request arrives afterwards: it waited in a socket buffer."""


DONE = frozenset({Fault.LANDED, Fault.REPEATED, Fault.FAILED_AFTER, Fault.KILLED_AFTER})
DEADLY = frozenset({Fault.KILLED, Fault.KILLED_AFTER, Fault.KILLED_LATE})
LISTING = frozenset({Fault.STALE, Fault.GAP, Fault.GHOST})
DAMAGE = frozenset({Fault.SHORT, Fault.FLIPPED})
"""What is wrong with the bytes of a read."""
_ANSWERS = frozenset({Fault.REFUSED, Fault.DROPPED, Fault.BUSY, Fault.FAILED, Fault.DENIED, Fault.DELAYED})
_PLAIN = _ANSWERS | {
    *(Fault.LANDED, Fault.LATE, Fault.FAILED_AFTER, Fault.KILLED, Fault.KILLED_AFTER, Fault.KILLED_LATE)
}
_REFUSALS = frozenset({Fault.CONFLICT, Fault.FULL, Fault.GARBLED})
POSSIBLE: Mapping[str, frozenset[Fault]] = {
    "read": _ANSWERS | DAMAGE | {Fault.KILLED},
    "info": _ANSWERS | {Fault.KILLED},
    "now": _ANSWERS | {Fault.KILLED},
    "list": _ANSWERS | LISTING | {Fault.KILLED},
    "put": _PLAIN | _REFUSALS,
    "create": _PLAIN | _REFUSALS | {Fault.REPEATED},
    "replace": _PLAIN | _REFUSALS | {Fault.REPEATED},
    "delete": _PLAIN,
}
"""The faults that each kind of call can meet."""


class ProcessKilled(BaseException):
    """Stands for the death of the process: nothing that it would still do reaches the storage."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a backend: its number, its kind (a key of `POSSIBLE`) and its key or prefix."""

    number: int
    kind: str
    key: str


Schedule = Callable[[Call], Fault | None]


def nothing(call: Call) -> None:
    """The schedule of a storage that works."""


def scripted(faults: Mapping[int, Fault]) -> Schedule:
    """Let call number `n` meet `faults[n]`."""
    return lambda call: faults.get(call.number)


def seeded(seed: int, *, rate: float, faults: Sequence[Fault]) -> Schedule:
    """Let a share `rate` of the calls meet one of those `faults` that are possible for them."""
    generator = random.Random(seed)

    def draw(call: Call) -> Fault | None:
        possible = [fault for fault in faults if fault in POSSIBLE[call.kind]]
        return generator.choice(possible) if possible and generator.random() < rate else None

    return draw


@dataclass
class Wire:
    """What is between the clients and one storage: requests under way, and what changed a moment ago."""

    under_way: deque[Callable[[], None]] = field(default_factory=deque)
    written: deque[str] = field(default_factory=lambda: deque(maxlen=12))
    deleted: deque[ObjectInfo] = field(default_factory=lambda: deque(maxlen=12))
    passed: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def forget(self) -> None:
        """Let so much time pass that listings show what is there."""
        self.written.clear()
        self.deleted.clear()

    def count(self) -> None:
        """Note that one more call passed."""
        with self.changed:
            self.passed += 1
            self.changed.notify_all()

    def wait_for_another(self) -> None:
        """Return when another call passed, or soon if nobody else calls."""
        with self.changed:
            seen = self.passed
            self.changed.wait_for(lambda: self.passed > seen, timeout=0.02)

    def arrive(self) -> None:
        """Let the oldest request that is under way reach the storage."""
        if self.under_way:
            self.under_way.popleft()()


class FaultyBackend:
    """The storage `inner` as one client sees it who meets the faults of `schedule`.

    Clients of one storage share its `wire`. `pause` is called before each call, so that a test can let others
    go first. `met` lists the faults that happened; a process that died is `dead` from then on.
    """

    def __init__(
        self,
        inner: Backend,
        schedule: Schedule = nothing,
        *,
        wire: Wire | None = None,
        pause: Callable[[], None] = lambda: None,
        seed: int = 0,
    ) -> None:
        self.inner = inner
        self.url = inner.url
        self.wire = wire or Wire()
        self.met: list[tuple[Call, Fault]] = []
        self.calls = 0
        self.dead = False
        self.schedule = schedule
        self.pause = pause
        self._seed = seed
        self._lock = threading.Lock()

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        call, fault = self._meet("read", key)
        data = self.inner.read(key, offset=offset, length=length)
        return self._damaged(data, call, fault) if fault in DAMAGE else data

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        call, fault = self._meet("read", key)
        data, token = self.inner.read_with_token(key)
        return (self._damaged(data, call, fault) if fault in DAMAGE else data), token

    def info(self, key: str) -> ObjectInfo | None:
        self._meet("info", key)
        return self.inner.info(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        call, fault = self._meet("list", prefix)
        found = {item.key: item for item in self.inner.list(prefix, after=after)}
        recent = [key for key in self.wire.written if key in found]
        hidden: Sequence[str] = ()
        if fault is Fault.STALE:
            hidden = recent[-self._generator(call).randint(1, 4) :]
        elif fault is Fault.GAP:
            hidden = recent[-2:-1]
        elif fault is Fault.GHOST:
            gone = (item for item in self.wire.deleted if item.key.startswith(prefix) and item.key > after)
            found = {**{item.key: item for item in gone}, **found}
        yield from (found[key] for key in sorted(found) if key not in hidden)

    def put(self, key: str, body: Body) -> None:
        kept = bytes(body)  # a request under way does not change with the caller's buffer
        self._write("put", key, lambda: self.inner.put(key, kept))

    def create(self, key: str, body: Body) -> None:
        kept = bytes(body)
        self._write("create", key, lambda: self.inner.create(key, kept))

    def replace(self, key: str, body: Body, *, token: str) -> None:
        kept = bytes(body)
        self._write("replace", key, lambda: self.inner.replace(key, kept, token=token))

    def delete(self, key: str) -> None:
        self._write("delete", key, lambda: self.inner.delete(key))

    def now(self) -> datetime:
        self._meet("now", "")
        return self.inner.now()

    def _write(self, kind: str, key: str, act: Callable[[], None]) -> None:
        before = self.inner.info(key) if kind == "delete" else None

        def do() -> None:
            act()
            if kind != "delete":
                self.wire.written.append(key)
            elif before is not None:
                self.wire.deleted.append(before)

        call, fault = self._meet(kind, key)
        if fault in DONE:
            with suppress(ConflictError, KeyMissing):  # refused by its condition, and that answer is lost too
                do()
        elif fault in (Fault.LATE, Fault.KILLED_LATE):
            self.wire.under_way.append(lambda: _quietly(do))
        else:
            do()
            return
        assert fault is not None
        raise self._outcome(call, fault)

    def _meet(self, kind: str, key: str) -> tuple[Call, Fault | None]:
        """Let others go first, then raise the fault of this call unless it is one of what is done or seen."""
        self.pause()
        if self.dead:
            raise ProcessKilled
        with self._lock:
            call = Call(self.calls, kind, key)
            self.calls += 1
            fault = self.schedule(call)
            if fault is None or fault not in POSSIBLE[kind]:
                fault = None
            else:
                self.met.append((call, fault))
        if fault is Fault.DELAYED:
            self.wire.wait_for_another()
            self.pause()
            fault = None
        self.wire.count()
        if fault is None or fault in (DONE | DAMAGE | LISTING | {Fault.LATE, Fault.KILLED_LATE}):
            return call, fault
        raise self._outcome(call, fault)

    def _outcome(self, call: Call, fault: Fault) -> BaseException:
        where = f"{call.kind} of {call.key} in {self.url} ({fault})"
        if fault in DEADLY:
            self.dead = True
            return ProcessKilled(where)
        conditional = call.kind in ("create", "replace")
        match fault:
            case Fault.REPEATED:
                return KeyExists(where) if call.kind == "create" else TokenMismatch(where)
            case Fault.FULL:
                return DiskFull(where)
            case Fault.GARBLED:
                return IntegrityError(where)
            case Fault.DENIED:
                return AccessDenied(where)
            case Fault.REFUSED:
                return Unreachable(where)
            case Fault.CONFLICT | Fault.BUSY:
                return Contended(where) if conditional else StorageUnavailable(where)
            case Fault.FAILED | Fault.FAILED_AFTER:
                return AnswerLost(where) if conditional else StorageUnavailable(where)
            case _:
                return AnswerLost(where) if conditional else Unreachable(where)

    def _damaged(self, data: bytes, call: Call, fault: Fault | None) -> bytes:
        if not data:
            return data
        position = self._generator(call).randrange(len(data) * 8)
        if fault is Fault.SHORT:
            return data[: position // 8]
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        return bytes(damaged)

    def _generator(self, call: Call) -> random.Random:
        return random.Random(f"{self._seed}/{call.number}/{call.key}")


def _quietly(act: Callable[[], None]) -> None:
    """Do what a request asks whose sender hears no answer any more."""
    with suppress(CellarError):
        act()
