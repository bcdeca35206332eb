"""The collector's turn: only one garbage collection changes a store at a time.

Commits and pins need no lock; the log orders them. Deleting does: a collector that was stopped and woken up
could delete a pack that another one had finished with and a writer has written again since. So a collector
holds `gc/turn.json`, looks at it before every deletion, and renews it. The next one waits until it was given
back, or until five minutes passed in the storage's clock without a renewal, which is longer than any request
takes to arrive.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

from store import conditional, elapsed
from store.backend import Backend
from store.errors import (
    AccessDenied,
    CollectorBusy,
    ConflictError,
    DiskFull,
    IntegrityError,
    KeyMissing,
    ReadOnly,
    StorageUnavailable,
)
from store.format import TURN_KEY, seal, unseal

TURN_SECONDS = 300
"""How long a turn counts after it was last written."""

_RENEW_AFTER_S = 60.0
_CERTAINLY_NOT_DONE = (AccessDenied, ReadOnly, DiskFull)


class Turn:
    """The right to collect; a context manager. Entering raises `CollectorBusy` if somebody else has it."""

    def __init__(self, backend: Backend, owner: str) -> None:
        self._backend = backend
        self._owner = owner
        self._body = b""
        self._renewed = 0.0
        self._under_way = False

    def __enter__(self) -> Self:
        began = elapsed.seconds()
        body = self._encode(TURN_SECONDS)
        if not conditional.create(self._backend, TURN_KEY, body):
            before, token = self._backend.read_with_token(TURN_KEY)
            self._check_over(before)
            if not conditional.replace(self._backend, TURN_KEY, body, before=before, token=token):
                raise self._busy("was faster", "a moment")
        self._body, self._renewed = body, began
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A deletion whose outcome is unknown may still arrive: then the next collector waits.
        if not self._under_way:
            try:
                self._write(self._encode(0))
            except (StorageUnavailable, ConflictError):
                if error is None:
                    raise

    def delete(self, key: str) -> None:
        """Delete an object if the turn is still ours; raises `CollectorBusy` if it is not."""
        self.check()
        with self._deleting():
            self._backend.delete(key)

    def check(self) -> None:
        """Make sure that the turn is ours, and renew it now and then; raises `CollectorBusy` if it is not."""
        if elapsed.seconds() - self._renewed > _RENEW_AFTER_S:
            began = elapsed.seconds()
            self._write(self._encode(TURN_SECONDS))
            self._renewed = began
        else:
            self._read()

    @contextmanager
    def _deleting(self) -> Iterator[None]:
        self._under_way = True
        try:
            yield
        except _CERTAINLY_NOT_DONE:
            self._under_way = False
            raise
        self._under_way = False

    def _read(self) -> str:
        """Return the token of our turn; raises `CollectorBusy` if it is not ours any more."""
        try:
            found, token = self._backend.read_with_token(TURN_KEY)
        except KeyMissing:
            found, token = b"", ""
        if found != self._body:
            raise self._busy("took over", "a moment")
        return token

    def _write(self, body: bytes) -> None:
        token = self._read()
        if not conditional.replace(self._backend, TURN_KEY, body, before=self._body, token=token):
            raise self._busy("took over", "a moment")
        self._body = body

    def _check_over(self, before: bytes) -> None:
        """Raise `CollectorBusy` while the turn that was read as `before` counts."""
        try:
            record = unseal(before, TURN_KEY, {"owner": str, "seconds": int})
        except IntegrityError:
            record = {"owner": "unknown", "seconds": TURN_SECONDS}
        info = self._backend.info(TURN_KEY)
        if info is None:
            return
        seconds = record["seconds"] if 0 <= record["seconds"] <= TURN_SECONDS else TURN_SECONDS
        over = info.modified + timedelta(seconds=seconds)
        now = self._backend.now()
        if record["seconds"] and now < over:
            raise self._busy(f"({record['owner']}) may still be at work", _wait(over - now))

    def _busy(self, what: str, wait: str) -> CollectorBusy:
        return CollectorBusy(f"another garbage collection of {self._backend.url} {what}; run again in {wait}")

    def _encode(self, seconds: int) -> bytes:
        return seal({"id": uuid.uuid4().hex, "owner": self._owner, "seconds": seconds})


def _wait(left: timedelta) -> str:
    return f"{max(1, round(left.total_seconds()))} seconds"
