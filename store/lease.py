"""Leases: what keeps the packs of a running build from being collected.

A lease says who builds and for how long it counts; its age is the age of the object in the storage's own
clock. It protects, it does not exclude: several workers may hold the lease of one build together.
"""

from __future__ import annotations

import uuid

from store import conditional, elapsed
from store.backend import Backend
from store.errors import KeyMissing
from store.format import lease_key, seal

LEASE_SECONDS = 24 * 3600
"""How long a lease counts after it was last written; garbage collection waits longer than this."""


class Lease:
    """The lease of one build, written on `hold` and again before a quarter of its time is over."""

    def __init__(self, backend: Backend, build: str, owner: str) -> None:
        self._backend = backend
        self._build = build
        self._owner = owner
        self._written = float("-inf")

    def hold(self) -> None:
        """Take or renew the lease unless this process did so recently."""
        if elapsed.seconds() - self._written < LEASE_SECONDS / 4:
            return
        key = lease_key(self._build)
        body = seal(
            {"build": self._build, "id": uuid.uuid4().hex, "owner": self._owner, "seconds": LEASE_SECONDS}
        )
        try:
            before, token = self._backend.read_with_token(key)
        except KeyMissing:
            conditional.create(self._backend, key, body)
        else:
            # Whether our write or another worker's lands, the lease is fresh.
            conditional.replace(self._backend, key, body, before=before, token=token)
        self._written = elapsed.seconds()
