"""Claims: one run at a time brings a head up to date.

`claims/<name>.json` says who works since when. It is a turn (`store.turn`): it counts for five minutes from
its last write, is renewed while the work goes on, and is given back at the end. What a killed process of this
machine left is recognised at once. A claim spares work and confusion; it is no lock that correctness rests
on: whoever lost one is stopped by the compare-and-swap of the head.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from store import process
from store.backend import Backend
from store.errors import CellarError, ClaimHeld
from store.format import check_label, claim_key
from store.turn import Turn, in_seconds

_RENEW_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class Claim(Turn):
    """The right to work on what `name` stands for; entering raises `ClaimHeld` if somebody else has it.

    A thread renews it until the context is left.
    """

    def __init__(self, backend: Backend, name: str, *, owner: str) -> None:
        self.name = check_label(name, "claim")
        since = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"owner": owner, "process": process.identity(), "since": since}
        super().__init__(backend, claim_key(name), record)
        self._lock = threading.Lock()  # a renewal changes what the other thread compares with
        self._taken = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._lost: ClaimHeld | None = None

    def take(self) -> Self:
        """Take the claim before the context is entered; raises `ClaimHeld` if somebody else has it."""
        super().__enter__()
        self._taken = True
        return self

    def __enter__(self) -> Self:
        if not self._taken:
            self.take()
        self._thread = threading.Thread(target=self._keep, name=f"claim {self.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        try:
            super().__exit__(kind, error, trace)
        except CellarError as trouble:
            # The work is done and its outcome decided; the next one waits until the claim lapses.
            _log.warning("the claim on %s was not given back: %s", self.name, trouble)

    def check(self) -> None:
        """Raise `ClaimHeld` if somebody took the claim over meanwhile."""
        if self._lost is not None:
            raise self._lost
        with self._lock:
            self._read()

    def _keep(self) -> None:
        while not self._over.wait(_RENEW_EVERY_S):
            try:
                with self._lock:
                    super().check()
            except ClaimHeld as error:
                self._lost = error
                return
            except CellarError as error:  # what is wrong may pass: an endpoint, credentials, a lost answer
                _log.warning(
                    "the claim on %s was not renewed, a later step tries again: %s", self.name, error
                )

    def _is_abandoned(self, record: Mapping[str, Any]) -> bool:
        return process.is_dead(record.get("process"))

    def _busy(self, record: Mapping[str, Any], what: str, left: timedelta | None) -> ClaimHeld:
        who = f"another run ({record['owner']})" if record.get("owner") else "another run"
        since = f" since {record['since']}" if record.get("since") else ""
        lapse = "" if left is None else f" (its claim lapses in {in_seconds(left)} unless it is renewed)"
        return ClaimHeld(
            f"{who} works on {self.name} in {self._backend.url}{since}{lapse}; run again later, or wait for "
            "it with --wait 10m"
        )
