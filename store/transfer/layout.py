"""What an export consists of beside its packs: a store of one commit and one pin, without clock or chance.

Every record follows from the rows, the packs and the tag. Times are the epoch and ids are digests, so that
equal snapshots in equal packs make equal exports, and whoever reads one can tell what must be in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.format import (
    EXPORT,
    FORMAT_KEY,
    TAG_PREFIX,
    check_label,
    encode_format,
    index_key,
    log_key,
    seal,
    sha256,
    snapshot_key,
    snapshot_rows_key,
)
from store.index import encode_index
from store.log import PIN, PUBLISH, Draft, encode_entry
from store.rows import Row, tabulate
from store.snapshot import encode_snapshot, snapshot_id
from store.visibility import sorted_rows

EPOCH = "1970-01-01T00:00:00+00:00"
"""The time of everything in an export."""

_PUBLISHED, _PINNED = 1, 2
"""The commits of an export."""


def names_of(identity: str, tag: str | None) -> dict[str, bytes]:
    """Return by their keys the record that makes a place an export of that snapshot, and its tag.

    Raises `InvalidName` for a tag that cannot be.
    """
    records = {FORMAT_KEY: _format(identity)}
    if tag is not None:
        key = TAG_PREFIX + check_label(tag, "tag")
        record = {"id": _unique(key, identity), "name": tag, "snapshot": identity, "time": EPOCH}
        records[key] = seal(record)
    return records


def index_of(rows: Sequence[Row], sizes: Mapping[str, int]) -> dict[str, bytes]:
    """Return the index file by its key; `sizes` are those of the packs that the rows lie in.

    It comes without a directory, which only makes looking up faster and could not be compared.
    """
    index = encode_index(sorted_rows(tabulate(rows)), sizes)
    return {index_key(index.digest): index.data}


def snapshot_of(rows: Sequence[Row]) -> dict[str, bytes]:
    """Return the two files of the snapshot by their keys."""
    head, table = encode_snapshot([row.visible_since(_PUBLISHED) for row in rows])
    identity = snapshot_id((row.name, row.version) for row in rows)
    return {snapshot_rows_key(sha256(table)): table, snapshot_key(identity): head}


def log_of(identity: str, index: str, rows: Sequence[Row], sizes: Mapping[str, int]) -> dict[str, bytes]:
    """Return the two log entries by their keys; `index` is the digest of the index file."""
    message = f"Export of snapshot {identity}"
    published = Draft(
        action=PUBLISH,
        message=message,
        run={},
        indexes=(index,),
        elements=len(rows),
        bytes=sum(row.length for row in rows),
        packs=len(sizes),
    )
    pinned = Draft(action=PIN, message=message, run={}, snapshot=identity)
    entries: dict[str, bytes] = {}
    previous = sha256(_format(identity))
    for number, draft in ((_PUBLISHED, published), (_PINNED, pinned)):
        key = log_key(number)
        unique = _unique(key, identity)
        entry = encode_entry(draft, sequence=number, previous=previous, unique=unique, time=EPOCH)
        entries[key] = entry
        previous = sha256(entry)
    return entries


def _format(identity: str) -> bytes:
    return encode_format(store=_unique("store", identity), created=EPOCH, features=[EXPORT])


def _unique(purpose: str, identity: str) -> str:
    return sha256(f"cellar export {purpose} {identity}".encode())[:32]
