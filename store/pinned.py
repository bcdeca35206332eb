"""Which snapshots a store has, with their sizes: read from the log and one listing.

A `pin` entry says how much its snapshot holds, so that a list of a thousand snapshots opens none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from store.backend import Backend
from store.errors import SnapshotNotFound
from store.format import SNAPSHOT_PREFIX, is_digest
from store.log import Commit, Log
from store.parallel import in_parallel
from store.snapshot_head import read_head

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class PinnedSnapshot:
    """A snapshot of the store: how many elements with how many bytes of payload, and who pinned it last."""

    id: str
    elements: int
    bytes: int
    commit: Commit


def pinned_snapshots(backend: Backend, log: Log) -> Iterator[PinnedSnapshot]:
    """Yield the snapshots that are there, in the order in which they were first pinned.

    Pins of earlier versions do not say what they hold; of those snapshots the head records are read, and
    `IntegrityError` is raised if one is damaged.
    """
    there = set(_stored(backend))
    pins: dict[str, Commit] = {}
    holds: dict[str, tuple[int, int]] = {}
    for commit in log.commits():
        if commit.snapshot in there:  # the log also tells of snapshots that were collected since
            pins[commit.snapshot] = commit
            if commit.holds is not None:
                holds[commit.snapshot] = commit.holds
    unknown = [identity for identity in pins if identity not in holds]
    looked_up = in_parallel(backend, lambda identity: _holds(backend, identity), unknown)
    known = {**dict(zip(unknown, looked_up, strict=True)), **holds}
    for identity, commit in pins.items():
        held = known[identity]
        if held is not None:
            yield PinnedSnapshot(identity, *held, commit)


def _stored(backend: Backend) -> Iterator[str]:
    for item in backend.list(SNAPSHOT_PREFIX):
        name = item.key.removeprefix(SNAPSHOT_PREFIX)
        if name.endswith(_SUFFIX) and is_digest(name.removesuffix(_SUFFIX)):
            yield name.removesuffix(_SUFFIX)


def _holds(backend: Backend, identity: str) -> tuple[int, int] | None:
    """What a head record says; None if it was collected since it was listed."""
    with suppress(SnapshotNotFound):
        record = read_head(backend, identity)
        return record["count"], record["bytes"]
    return None
