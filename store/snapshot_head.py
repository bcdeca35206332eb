"""The head record of a snapshot: what is in it, and where in its rows file each part of it lies.

The rows file has a digest per row group, so that a reader of one element checks what it fetched without
fetching the rest, and the head holds the Parquet footer itself, so that no request is needed for that. Heads
written before that lack it; the footer is then read from the file.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import pyarrow as pa

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing, SnapshotNotFound
from store.format import RESTORE, canonical_json, encode_json, is_digest, seal, sha256, snapshot_key, unseal
from store.region import is_region
from store.rows import Row, encode_rows
from store.sparse import regions_of

_LEAST_ROWS = 1024
_MAX_FOOTER_BYTES = 64 * 1024**2
_FIELDS = {
    "bytes": int,
    "count": int,
    "footer": list,
    "groups": list,
    "id": str,
    "kinds": dict,
    "rows": str,
}


def group_rows(count: int) -> int:
    """Rows per row group of a snapshot of `count` elements.

    A reader of one element fetches the head, which grows with the number of groups, and one group. Both stay
    small together if they grow with the square root of the count.
    """
    return max(_LEAST_ROWS, 4 * isqrt(count))


class IdDigest:
    """Computes the id of a snapshot from tables of its rows, given in the order of their names."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._separator = b""

    def update(self, table: pa.Table) -> None:
        """Take in the next rows."""
        pairs = zip(table["name"].to_pylist(), table["version"].to_pylist(), strict=True)
        if len(table):
            self._hash.update(self._separator + encode_json(list(pairs))[1:-1].encode())
            self._separator = b","

    def id(self) -> str:
        """The id of the rows taken in so far."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()


def snapshot_id(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the id of the set of (full name, version) `pairs`."""
    return sha256(canonical_json(sorted([name, version] for name, version in pairs)))


def encode_snapshot(rows: Sequence[Row]) -> tuple[bytes, bytes]:
    """Return the head record and the rows file of the snapshot of `rows`, one version per name."""
    ordered = sorted(rows, key=lambda row: row.name)
    size = group_rows(len(ordered))
    data = encode_rows(ordered, {"snapshot": True}, group_size=size)
    regions, footer = regions_of(data)
    kinds: dict[str, int] = {}
    for row in ordered:
        kinds[row.kind] = kinds.get(row.kind, 0) + 1
    groups = []
    for number, region in enumerate(regions):
        members = ordered[number * size : (number + 1) * size]
        groups.append([members[0].name, members[-1].name, region.offset, region.length, region.digest])
    record = {
        "bytes": sum(row.length for row in ordered),
        "count": len(ordered),
        "footer": [footer.offset, footer.length, footer.digest],
        "footer_zlib": base64.b64encode(zlib.compress(data[footer.offset :], 9)).decode(),
        "groups": groups,
        "id": snapshot_id((row.name, row.version) for row in ordered),
        "kinds": kinds,
        "rows": sha256(data),
    }
    return seal(record), data


def read_head(backend: Backend, identity: str) -> dict[str, Any]:
    """Read and check the head record of a snapshot; raises `SnapshotNotFound` or `IntegrityError`."""
    try:
        return decode_head(backend.read(snapshot_key(identity)), identity)
    except KeyMissing as error:
        raise SnapshotNotFound(
            f"no snapshot {identity[:12]} in {backend.url}; `cellar snapshot ls` shows those that exist"
        ) from error


def decode_head(data: bytes, identity: str) -> dict[str, Any]:
    """Decode the head record of a snapshot; raises `IntegrityError` if it is not that of `identity`."""
    key = snapshot_key(identity)
    record = unseal(data, key, _FIELDS)
    if record["id"] != identity:
        raise IntegrityError(f"{key} holds snapshot {record['id'][:12]} instead; {RESTORE}")
    if not _is_head(record):
        raise IntegrityError(f"{key} does not say where its rows are; {RESTORE}")
    return record


def footer_of(record: dict[str, Any]) -> bytes | None:
    """Return the Parquet footer that a head holds, None if it holds none; checked against its digest."""
    if "footer_zlib" not in record:
        return None
    _, length, digest = record["footer"]
    try:
        packed = base64.b64decode(record["footer_zlib"], validate=True)
        footer = zlib.decompressobj().decompress(packed, length) if length else b""
    except (ValueError, TypeError, zlib.error):
        footer = b""
    if len(footer) != length or sha256(footer) != digest:
        raise IntegrityError(f"{snapshot_key(record['id'])} holds a footer of other rows; {RESTORE}")
    return footer


def _is_head(record: dict[str, Any]) -> bool:
    """Tell whether the parts of a sealed head fit together: it was perhaps not sealed by a store."""
    groups = record["groups"]
    if not all(isinstance(group, list) and len(group) == 5 for group in groups):
        return False
    names = [name for first, last, *_ in groups for name in (first, last)]
    regions = [region for _, _, *region in groups]
    if not all(isinstance(name, str) for name in names) or not all(map(is_region, regions)):
        return False
    if not is_region(record["footer"]):
        return False
    ends = [*(region[0] for region in regions), record["footer"][0]]
    return (
        all(first <= last for first, last in pairwise(names))
        and all(offset + length == end for (offset, length, _), end in zip(regions, ends[1:], strict=True))
        and record["footer"][1] <= _MAX_FOOTER_BYTES
        and is_digest(record["rows"])
        and record["count"] >= 0
        and record["bytes"] >= 0
        and all(type(number) is int and number >= 0 for number in record["kinds"].values())
        and sum(record["kinds"].values()) == record["count"]
    )
