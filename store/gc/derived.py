"""Derived files that newer ones replace: old checkpoints, and the segments and history that only they name.

A reader that opened a store may work with an old checkpoint for a while. So a checkpoint goes a grace period
after the next one was written, and what it named goes with it if no later one names it. Index files that the
log names stay for good, since they are the history; those of a commit that was killed look the same and stay
too, because the commit may be under way again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pyarrow.compute as pc

from store.backend import Backend, ObjectInfo
from store.checkpoint import objects_of
from store.errors import IntegrityError, KeyMissing
from store.format import (
    CHECKPOINT_PREFIX,
    HISTORY_PREFIX,
    INDEX_PREFIX,
    check_digest,
    index_key,
    is_digest,
)
from store.history import read_block
from store.log import Log
from store.manifest import decode_checkpoint
from store.rows import decode_table

_SUFFIXES = (".parquet", ".keys")


def superseded(
    backend: Backend, log: Log, now: datetime, grace: timedelta, seen: Callable[[int], None]
) -> list[ObjectInfo]:
    """Return the derived files that nobody needs any more, in the order in which they may be deleted."""
    old, needed = _checkpoints(backend, now, grace)
    listed = [*backend.list(HISTORY_PREFIX), *backend.list(INDEX_PREFIX)]
    rest = [item for item in listed if item.key not in needed and now - item.modified >= grace]
    named, replaced = _named(backend, log) if rest else (set(), set())
    spare: dict[str, bool] = {}
    for done, item in enumerate(rest, start=1):
        digest = item.key.removeprefix(INDEX_PREFIX).rpartition(".")[0]
        if item.key.startswith(HISTORY_PREFIX) or (item.key.endswith(".bundle") and is_digest(digest)):
            old.append(item)
        elif item.key.endswith(_SUFFIXES) and is_digest(digest):
            if digest not in spare:
                spare[digest] = digest in replaced or (digest not in named and _is_derived(backend, digest))
            if spare[digest]:
                old.append(item)
        seen(done)
    return old


def _checkpoints(backend: Backend, now: datetime, grace: timedelta) -> tuple[list[ObjectInfo], set[str]]:
    """Return the checkpoints that were superseded a grace period ago, and all keys that the others name."""
    old: list[ObjectInfo] = []
    needed: set[str] = set()
    over = False  # whether an intact checkpoint that is older than the grace period came before
    for item in backend.list(CHECKPOINT_PREFIX):  # newest first
        if over or (item.key.endswith(".parquet") and now - item.modified >= grace):
            old.append(item)
            continue
        try:
            needed |= objects_of(decode_checkpoint(backend.read(item.key), item.key))
        except (IntegrityError, KeyMissing):
            continue
        over = now - item.modified >= grace
    return old, needed


def _named(backend: Backend, log: Log) -> tuple[set[str], set[str]]:
    """Return the index files that log entries name, and those of them that a repair replaced."""
    named: set[str] = set()
    replaced: set[str] = set()
    for entries in _blocks_of_entries(backend, log):
        for entry in entries:
            record = json.loads(entry)
            named.update(record["indexes"])
            replaced.difference_update(record["indexes"])  # made and named again
            replaced.update(record.get("replaces", ()))
    return named, replaced


def _blocks_of_entries(backend: Backend, log: Log) -> Iterator[list[bytes]]:
    """Yield all entries up to the tip without keeping them."""
    for block in log.checkpoint.history:
        try:
            yield read_block(backend, block)
        except (IntegrityError, KeyMissing):
            yield log.entries_of(block)
    yield log.recent_entries()


def _is_derived(backend: Backend, digest: str) -> bool:
    """Tell whether an index file was merged from others: then its rows say which commits they are of."""
    key = index_key(digest)
    try:
        data = check_digest(backend.read(key), digest, key, holds="index of a commit")
        commits = decode_table(data, key)[0]["commit"]
    except (IntegrityError, KeyMissing):
        return True  # of no use to anybody
    return bool(pc.all(pc.greater(commits, 0)).as_py())
