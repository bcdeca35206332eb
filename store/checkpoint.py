"""Log checkpoints: what lets a store open without replaying its history.

Every 64 commits, one of the committers writes `log/checkpoint-<n>-<sha256>.parquet`. It holds entries 1 to
`n` as they are, and for each block of 64 entries the digest of one index file that merges the index files
of the block. So an open reads one checkpoint, one index per block and at most 64 recent entries, and a
block is merged once: the work is in proportion to what was added, not to what the store holds. Checkpoints
are derived data; a damaged or missing one costs time, and `verify` compares it with the log.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing, StorageUnavailable
from store.fetch import fetch_all
from store.format import (
    CHECKPOINT_PREFIX,
    check_digest,
    checkpoint_key,
    index_key,
    is_digest,
    sha256,
)
from store.rows import (
    UNREADABLE,
    check_columns,
    decode_table,
    encode_rows,
    encode_table,
    read_parquet,
    rows_of,
)

if TYPE_CHECKING:
    from store.log import Commit, Log

BLOCK = 64
"""Commits per block; a checkpoint covers whole blocks."""

_SCHEMA = pa.schema(
    [("sequence", pa.int64()), ("digest", pa.string()), ("entry", pa.string()), ("index", pa.string())]
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Entries 1 to `sequence` and, per block of `BLOCK` entries, the digest of its merged index (or "")."""

    entries: list[bytes]
    merged: list[str]

    @property
    def sequence(self) -> int:
        """Number of the last entry it covers."""
        return len(self.entries)

    @classmethod
    def empty(cls) -> Checkpoint:
        """The checkpoint of a store that has none."""
        return cls([], [])


def latest_checkpoint(backend: Backend) -> Checkpoint:
    """Read the newest intact checkpoint; a damaged one is logged, because the log says all that it did."""
    for key in reversed([item.key for item in backend.list(CHECKPOINT_PREFIX)]):
        try:
            return decode_checkpoint(backend.read(key), key)
        except (IntegrityError, KeyMissing) as error:
            _log.warning("a checkpoint of %s is left out, opening takes longer: %s", backend.url, error)
    return Checkpoint.empty()


def decode_checkpoint(data: bytes, key: str) -> Checkpoint:
    """Decode a checkpoint file, checked against the digest in its key."""
    digest = key.removesuffix(".parquet").rpartition("-")[2]
    if not is_digest(digest):
        raise IntegrityError(f"{key} is not the name of a checkpoint; delete that object")
    check_digest(data, digest, key, holds="log checkpoint")
    try:
        table = read_parquet(pa.BufferReader(data))
        check_columns(table, _SCHEMA)
        columns = table.to_pydict()
        entries = [entry.encode() for entry in columns["entry"]]
    except UNREADABLE as error:
        raise IntegrityError(f"{key} is not a checkpoint of this store; delete that object") from error
    merged = columns["index"][BLOCK - 1 :: BLOCK]
    if len(entries) != len(merged) * BLOCK or not all(is_digest(digest) for digest in merged if digest):
        raise IntegrityError(f"{key} does not cover whole blocks of the log; delete that object")
    return Checkpoint(entries, merged)


def write_checkpoint_if_due(backend: Backend, log: Log) -> None:
    """Write a checkpoint if a block was completed since the last one that `log` knows of.

    The commit that completed the block is visible already, so a failure here is logged and left to the next
    committer. Racing committers write the same bytes under the same key.
    """
    commits, entries = log.commits(), log.entries()
    blocks = len(commits) // BLOCK
    merged = list(log.checkpoint.merged)
    if blocks <= len(merged):
        return
    try:
        todo = range(len(merged), blocks)
        merged += [_merge(backend, commits[block * BLOCK : (block + 1) * BLOCK]) for block in todo]
        covered = blocks * BLOCK
        table = pa.table(
            {
                "sequence": list(range(1, covered + 1)),
                "digest": [commit.digest for commit in commits[:covered]],
                "entry": [entry.decode() for entry in entries[:covered]],
                "index": [merged[position // BLOCK] for position in range(covered)],
            },
            schema=_SCHEMA,
        )
        data = encode_table(table)
        backend.put(checkpoint_key(covered, sha256(data)), data)
        log.adopt(Checkpoint(entries[:covered], merged))
    except StorageUnavailable as error:
        _log.warning(
            "checkpoint %d of %s was not written, the next commit will: %s", blocks, backend.url, error
        )


def _merge(backend: Backend, commits: Sequence[Commit]) -> str:
    """Write one index file with the rows of all `commits`, in commit order; "" if they added none."""
    sources = [(commit.sequence, digest) for commit in commits for digest in commit.indexes]
    if not sources:
        return ""
    keys = [index_key(digest) for _, digest in sources]
    rows, packs = [], {}
    for (sequence, digest), key, data in zip(sources, keys, fetch_all(backend, keys), strict=True):
        table, metadata = decode_table(check_digest(data, digest, key, holds="index of a commit"), key)
        rows.extend(rows_of(table, commit=sequence))
        packs.update(metadata["packs"])
    merged = encode_rows(rows, {"packs": packs})
    digest = sha256(merged)
    backend.put(index_key(digest), merged)
    return digest
