"""Rows files of snapshots that no head record names: what a killed pin or a killed collection leaves.

Their snapshot's id follows from their rows. They are removed by that id, through the log as any snapshot,
because a pin of the same set may be about to name the same file again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from store.backend import Backend, ObjectInfo
from store.errors import IntegrityError, KeyMissing, SnapshotNotFound
from store.format import SNAPSHOT_PREFIX, check_digest, is_digest
from store.rows import decode_table
from store.snapshot_head import read_head, snapshot_id

_SUFFIX = ".parquet"


def stray_rows(
    backend: Backend, heads: Iterable[str], files: Mapping[str, ObjectInfo]
) -> dict[str, list[ObjectInfo]]:
    """Return those of the rows `files` (by digest) that none of `heads` names, by the id of their snapshot.

    Costs nothing where there are as many files as heads. Files that are no rows of a snapshot are left out.
    """
    named = list(heads)
    if len(files) <= len(named):
        return {}
    used = {rows_digest(backend, head) for head in named}
    found: dict[str, list[ObjectInfo]] = {}
    for digest, item in files.items():
        if digest not in used:
            try:
                data = check_digest(backend.read(item.key), digest, item.key, holds="rows of a snapshot")
                table = decode_table(data, item.key)[0]
            except (IntegrityError, KeyMissing):
                continue
            pairs = zip(table["name"].to_pylist(), table["version"].to_pylist(), strict=True)
            found.setdefault(snapshot_id(pairs), []).append(item)
    return found


def rows_digest(backend: Backend, head: str) -> str:
    """Return the digest of the rows file that a head record names, "" if it is gone or damaged."""
    try:
        return str(read_head(backend, head)["rows"])
    except (IntegrityError, SnapshotNotFound):
        return ""


def rows_files(items: Iterable[ObjectInfo]) -> dict[str, ObjectInfo]:
    """Pick the rows files out of a listing of snapshots, by digest."""
    named = ((item.key.removeprefix(SNAPSHOT_PREFIX).removesuffix(_SUFFIX), item) for item in items)
    return {digest: item for digest, item in named if item.key.endswith(_SUFFIX) and is_digest(digest)}
