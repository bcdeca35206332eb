"""The collector's turn: only one garbage collection changes a store at a time.

Deleting needs a turn: a collector that was stopped and woken up could delete a pack that another one had
finished with and a writer has written again since. So a collector holds `gc/turn.json`, looks at it before
every deletion, and renews it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from store.backend import Backend
from store.errors import AccessDenied, CollectorBusy, DiskFull, ReadOnly
from store.format import TURN_KEY
from store.turn import TURN_SECONDS, in_seconds
from store.turn import Turn as AnyTurn

__all__ = ["TURN_SECONDS", "Turn"]

_CERTAINLY_NOT_DONE = (AccessDenied, ReadOnly, DiskFull)


class Turn(AnyTurn):
    """The right to collect; a context manager. Entering raises `CollectorBusy` if somebody else has it."""

    def __init__(self, backend: Backend, owner: str) -> None:
        super().__init__(backend, TURN_KEY, {"owner": owner})
        self._under_way = False

    def delete(self, key: str) -> None:
        """Delete an object if the turn is still ours; raises `CollectorBusy` if it is not."""
        self.check()
        with self._deleting():
            self._backend.delete(key)

    @contextmanager
    def _deleting(self) -> Iterator[None]:
        self._under_way = True
        try:
            yield
        except _CERTAINLY_NOT_DONE:
            self._under_way = False
            raise
        self._under_way = False

    def _may_be_given_back(self) -> bool:
        # A deletion whose outcome is unknown may still arrive: then the next collector waits.
        return not self._under_way

    def _busy(self, record: Mapping[str, Any], what: str, left: timedelta | None) -> CollectorBusy:
        return CollectorBusy(
            f"another garbage collection of {self._backend.url} {what}; run again in {in_seconds(left)}"
        )
