"""Turns: the right to do what only one process may do at a time, kept under one key of the storage.

Commits and pins need no lock; the log orders them. Some work does: deleting, or bringing a head up to date.
Whoever does it holds a sealed record, renews it, and gives it back. The next one waits until it was given
back, or until `TURN_SECONDS` passed in the storage's clock without a renewal, which is longer than any
request takes to arrive.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from store import conditional, elapsed
from store.backend import Backend
from store.errors import CellarError, ConflictError, IntegrityError, KeyMissing
from store.format import seal, unseal

TURN_SECONDS = 300
"""How long a turn counts after it was last written."""

_RENEW_AFTER_S = 60.0


class Turn(ABC):
    """A context manager over one key; `record` is what else the holder says of itself.

    What entering raises while somebody else has the turn is up to those that derive from it.
    """

    def __init__(self, backend: Backend, key: str, record: Mapping[str, Any]) -> None:
        self._backend = backend
        self._key = key
        self._record = dict(record)
        self._body = b""
        self._sent: set[bytes] = set()
        """What was written since without an answer; each may be there, or arrive late, and is ours."""
        self._renewed = 0.0

    def __enter__(self) -> Self:
        began = elapsed.seconds()
        body = self._encode(TURN_SECONDS)
        if not conditional.create(self._backend, self._key, body):
            before, token = self._backend.read_with_token(self._key)
            self._check_over(before, token)
            if not conditional.replace(self._backend, self._key, body, before=before, token=token):
                raise self._busy({}, "was faster", None)
        self._body, self._renewed = body, began
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._may_be_given_back():
            try:
                self._write(self._encode(0))
            except CellarError:
                if error is None:
                    raise

    def check(self) -> None:
        """Make sure that the turn is ours, and renew it now and then; raises what `_busy` says otherwise."""
        if elapsed.seconds() - self._renewed > _RENEW_AFTER_S:
            began = elapsed.seconds()
            self._write(self._encode(TURN_SECONDS))
            self._renewed = began
        else:
            self._read()

    @abstractmethod
    def _busy(self, record: Mapping[str, Any], what: str, left: timedelta | None) -> ConflictError:
        """The error that says that somebody else, with that `record`, has the turn, for `left` at most."""

    def _may_be_given_back(self) -> bool:
        """Whether nothing that this turn protects can still happen."""
        return True

    def _is_abandoned(self, record: Mapping[str, Any]) -> bool:
        """Whether it is certain that the holder of the turn with that `record` is no more."""
        return False

    def _read(self) -> str:
        """Return the token of our turn; raises what `_busy` says if it is not ours any more."""
        try:
            found, token = self._backend.read_with_token(self._key)
        except KeyMissing:
            found, token = b"", ""
        if found in self._sent:
            self._landed(found)
        if found != self._body:
            raise self._busy({}, "took over", None)
        return token

    def _write(self, body: bytes) -> None:
        for _ in range(2):  # once more if an earlier write of ours arrived between the look and this one
            token = self._read()
            self._sent.add(body)
            if conditional.replace(self._backend, self._key, body, before=self._body, token=token):
                return self._landed(body)
        raise self._busy({}, "took over", None)

    def _landed(self, body: bytes) -> None:
        """Note what is there now. Writes of ours that compare with anything older can land no more."""
        self._body = body
        self._sent.clear()

    def _check_over(self, before: bytes, token: str) -> None:
        """Raise what `_busy` says while the turn that was read as `before` counts."""
        try:
            record = unseal(before, self._key, {"owner": str, "seconds": int})
        except IntegrityError:
            record = {"owner": "unknown", "seconds": TURN_SECONDS}
        info = self._backend.info(self._key)
        if info is None or self._is_abandoned(record) or record["seconds"] == 0:
            return
        seconds = record["seconds"] if 0 <= record["seconds"] <= TURN_SECONDS else TURN_SECONDS
        now, modified = self._backend.now(), info.modified
        if modified > now:
            # The storage's clock was set back since. How long ago nobody knows, so the same bytes are written
            # once more: they count from now on, and whoever holds the turn finds its own.
            conditional.replace(self._backend, self._key, before, before=before, token=token)
            modified = now
        if now < (over := modified + timedelta(seconds=seconds)):
            raise self._busy(record, f"({record['owner']}) may still be at work", over - now)

    def _encode(self, seconds: int) -> bytes:
        return seal({**self._record, "id": uuid.uuid4().hex, "seconds": seconds})


def in_seconds(left: timedelta | None) -> str:
    """How long to wait, for people."""
    return "a moment" if left is None else f"{max(1, round(left.total_seconds()))} seconds"
