"""Taking the claim on a head, at once or after waiting for the run that has it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flows import watch
from flows.origin import origin
from store import Claim, Store
from store.errors import ClaimHeld

_LOOK_AGAIN_S = 2.0


@contextmanager
def claimed(store: Store, head: str, *, wait_s: float = 0.0) -> Iterator[Claim]:
    """Hold the claim on a head, so that no other run works on it at the same time.

    Raises:
        ClaimHeld: another run had it all the time, for `wait_s` seconds at most.
    """
    owner = "{user}@{host}".format_map(origin()) + f", process {os.getpid()}"
    claim = _taken(store, head, owner, wait_s)
    with claim:
        yield claim


def _taken(store: Store, head: str, owner: str, wait_s: float) -> Claim:
    began = time.monotonic()
    with watch.progress(f"wait for the head {head}", "seconds") as progress:
        while True:
            claim = store.claim(head, owner=owner)
            try:
                return claim.take()
            except ClaimHeld:
                left = wait_s - (time.monotonic() - began)
                if left <= 0:
                    raise
            progress(int(wait_s - left), int(wait_s))
            time.sleep(min(_LOOK_AGAIN_S, left))  # another process has it: there is nothing to wait on
