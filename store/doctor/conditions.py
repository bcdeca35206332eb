"""Whether a storage enforces the conditions of conditional writes, one after the other and in a race.

The whole commit protocol stands on them: a storage that answers "written" to two creates of one key loses
commits without a word. Every function returns what is wrong, or "" if nothing is. A refusal is believed only
after a look at the content, and so is a success.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Barrier
from typing import Self

from store.backend import Backend
from store.doctor.ground import Ground
from store.errors import AnswerLost, Contended, KeyExists, KeyMissing, TokenMismatch

RACERS = 16
ROUNDS = 12
"""Races per check, unless they take long: a server that looks first is caught within one or two."""
_LONG_S = 2.0
"""A server that makes racers wait this long for one another takes locks; more races show nothing more."""
NO_SUCH_ETAG = '"0123456789abcdef0123456789abcdef"'
_REFUSED = (KeyExists, TokenMismatch, KeyMissing)
_TRIES = 8


@dataclass(frozen=True, slots=True)
class _Outcome:
    body: bytes
    accepted: bool = False
    unknown: bool = False


def create_is_enforced(ground: Ground) -> str:
    """Create a key, then again with other and with equal content; once more after it was deleted."""
    backend, key, first = ground.backend, ground.key("create"), ground.body()
    if not _accepted(lambda: backend.create(key, first)):
        return "a create of a new key is refused"
    for body in (ground.body(), first):
        if _accepted(lambda body=body: backend.create(key, body)):  # type: ignore[misc]
            return "a second create of one key is accepted (If-None-Match is ignored)"
    if backend.read(key) != first:
        return "a create that was refused changed the object all the same"
    backend.delete(key)
    if not _accepted(lambda: backend.create(key, first)):
        return "a key that was deleted cannot be created again"
    return ""


def replace_is_enforced(ground: Ground) -> str:
    """Replace with the fresh token, which must work, and with a stale and an invented one, which must not."""
    backend, key = ground.backend, ground.key("replace")
    first, second, third = ground.body(), ground.body(), ground.body()
    backend.put(key, first)
    stale = backend.read_with_token(key)[1]
    if not _accepted(lambda: backend.replace(key, second, token=stale)):
        return "a replacement of the content that was just read is refused"
    data, fresh = backend.read_with_token(key)
    if data != second:
        return "a replacement that was accepted left the old content"
    if fresh == stale:
        return "the ETag stays the same when content of the same length replaces another"
    for token in (stale, NO_SUCH_ETAG):
        if _accepted(lambda token=token: backend.replace(key, third, token=token)):  # type: ignore[misc]
            return "a replacement with a stale ETag is accepted (If-Match is ignored)"
    if backend.read(key) != second:
        return "a replacement that was refused changed the object all the same"
    if not _accepted(lambda: backend.replace(key, third, token=fresh)) or backend.read(key) != third:
        return "a replacement with the fresh ETag does not take place"
    return ""


def replace_needs_the_key(ground: Ground) -> str:
    """Replace a key that does not exist: refused, and nothing appears."""
    backend, key = ground.backend, ground.key("absent")
    if _accepted(lambda: backend.replace(key, ground.body(), token=NO_SUCH_ETAG)):
        return "a replacement of a key that does not exist is accepted (If-Match is ignored)"
    if backend.info(key) is not None:
        return "a replacement of a key that does not exist was refused and wrote it all the same"
    return ""


def racing_creates_have_one_winner(ground: Ground, *, racers: int = 0) -> str:
    """Let all racers (or so many) create one key at the same moment."""
    with _Racers(ground, racers or RACERS) as race:
        for number in _rounds():
            problem = race.create([ground.key(f"race-{number}")])
            if problem:
                return problem
    return ""


def racing_creates_of_two_keys_have_two_winners(ground: Ground) -> str:
    """Let the racers create two keys at the same moment, half of them each."""
    with _Racers(ground, RACERS) as race:
        for number in _rounds():
            problem = race.create([ground.key(f"race-{number}-{side}") for side in ("a", "b")])
            if problem:
                return problem
    return ""


def racing_replaces_have_one_winner(ground: Ground) -> str:
    """Let all racers replace the same content at the same moment, each with the same valid token."""
    backend, key = ground.backend, ground.key("race-replace")
    backend.put(key, ground.body())
    with _Racers(ground, RACERS) as race:
        for _ in _rounds():
            before, token = backend.read_with_token(key)
            outcomes = race.run([lambda body, t=token: backend.replace(key, body, token=t)] * RACERS)  # type: ignore[misc]
            problem = _judge(backend.read(key), outcomes, before, "replacements of one content")
            if problem:
                return problem
    return ""


def _rounds() -> Iterator[int]:
    start = time.monotonic()
    for number in range(ROUNDS):
        yield number
        if time.monotonic() - start > _LONG_S:
            return


class _Racers:
    """Threads with open connections that start to write at the same moment."""

    def __init__(self, ground: Ground, count: int) -> None:
        self._ground = ground
        self._count = count
        self._pool = ThreadPoolExecutor(count)

    def __enter__(self) -> Self:
        self._ground.backend.put(self._ground.key("warm"), b"warm")
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def create(self, keys: Sequence[str]) -> str:
        """Race creates of `keys`, spread over the racers; return what is wrong."""
        backend = self._ground.backend
        chosen = [keys[number % len(keys)] for number in range(self._count)]
        outcomes = self.run([lambda body, k=key: backend.create(k, body) for key in chosen])  # type: ignore[misc]
        for key in keys:
            mine = [outcome for other, outcome in zip(chosen, outcomes, strict=True) if other == key]
            problem = _judge(_content(backend, key), mine, None, "creates of one key")
            if problem:
                return problem
        return ""

    def run(self, writes: Sequence[Callable[[bytes], None]]) -> list[_Outcome]:
        """Call every write with a body of its own, all at once, and return the outcomes in order."""
        barrier = Barrier(len(writes))

        def race(write: Callable[[bytes], None]) -> _Outcome:
            body = self._ground.body()
            try:
                self._ground.backend.read(self._ground.key("warm"))  # so that nobody has to connect first
            finally:
                barrier.wait()  # the others wait for this thread even if it cannot take part
            return _attempt(write, body)

        return list(self._pool.map(race, writes))


def _attempt(write: Callable[[bytes], None], body: bytes) -> _Outcome:
    for number in range(_TRIES):
        time.sleep(0.05 * number)
        try:
            write(body)
            return _Outcome(body, accepted=True)
        except Contended:
            continue
        except _REFUSED:
            return _Outcome(body)
        except AnswerLost:
            return _Outcome(body, unknown=True)
    return _Outcome(body)


def _judge(stored: bytes | None, outcomes: Sequence[_Outcome], before: bytes | None, what: str) -> str:
    """Compare what the racers were told with what is stored now."""
    accepted = [outcome.body for outcome in outcomes if outcome.accepted]
    unknown = [outcome.body for outcome in outcomes if outcome.unknown]
    if len(accepted) > 1:
        return f"{len(accepted)} of {len(outcomes)} simultaneous {what} are accepted (not enforced in a race)"
    if accepted and stored != accepted[0]:
        return f"of simultaneous {what} one is accepted and another one is stored"
    if not accepted and not unknown and stored == before:
        return f"simultaneous {what} are all refused"
    return ""


def _content(backend: Backend, key: str) -> bytes | None:
    with suppress(KeyMissing):
        return backend.read(key)
    return None


def _accepted(write: Callable[[], None]) -> bool:
    """Whether a conditional write is accepted; one that meets another in flight is sent again."""
    for number in range(_TRIES):
        time.sleep(0.05 * number)
        try:
            write()
            return True
        except Contended:
            continue
        except _REFUSED:
            return False
    return False
