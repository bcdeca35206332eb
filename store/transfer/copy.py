"""Copying a snapshot, or a choice of its elements, into another store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from store.backend import Backend
from store.build import Build
from store.errors import IntegrityError, KeyMissing, TagExists
from store.format import canonical_json, pack_key, sha256
from store.pack import SealedPack
from store.rows import Row
from store.signature import put_signature, read_signatures
from store.snapshot import Snapshot, snapshot_id
from store.store import Store
from store.transfer.choice import Choice
from store.transfer.parcel import Parcel, checked_pack, convey, pack_parcel, parcels_of
from store.verify import Progress, silent
from store.writer import Receipt


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did: `snapshot` is what was pinned, `source` what was copied or chosen from.

    `elements` counts the snapshot's, `new` those of them that the store did not have. `packs` were there
    already, sent as they are, or packed anew; `bytes` is what was sent.
    """

    snapshot: str
    source: str
    elements: int
    new: int = 0
    packs_found: int = 0
    packs_sent: int = 0
    packs_made: int = 0
    bytes: int = 0
    signatures: int = 0
    tag: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def copy_snapshot(
    source: Store,
    snapshot: Snapshot,
    destination: Store,
    *,
    choice: Choice | None = None,
    tag: str | None = None,
    progress: Progress = silent,
) -> CopyReport:
    """Copy `snapshot` of `source`, or what `choice` takes of it, into `destination` and pin it there.

    Only packs that are missing there are sent, each checked to the last byte on its way; then one commit
    makes the elements visible. `progress` hears of bytes. A copy that was killed continues when it is called
    again, and one that is complete sends nothing. A whole snapshot keeps its id and its signatures.

    Raises `IntegrityError` for anything damaged or forged, `MissingRequirement` for an incomplete choice,
    `TagExists` if `tag` names another snapshot; nothing is visible in `destination` then.
    """
    signatures = list(read_signatures(source.backend, snapshot.id))
    rows = (choice or Choice()).rows(snapshot)
    identity = snapshot_id((row.name, row.version) for row in rows)
    _check_tag(destination, tag, identity)
    elements = "1 element" if len(rows) == 1 else f"{len(rows):,} elements"
    message = f"Copy {elements} of snapshot {snapshot.id[:12]} from {source.url}"
    known = destination.catalog().known(row.version for row in rows)
    missing = [row for row in rows if row.version not in known]
    new, refs = len(missing), [row.ref for row in rows]
    figures = _send(source, destination, rows, missing, message, progress) if missing else {}
    del rows, missing  # the pin needs memory for rows of its own
    pinned = destination.pin(refs, message=message)
    kept = signatures if pinned.id == snapshot.id else []
    for signature in kept:
        put_signature(destination.backend, signature)
    if tag is not None:
        destination.tag(tag, pinned.id)
    return CopyReport(
        pinned.id,
        snapshot.id,
        elements=len(refs),
        new=new,
        signatures=len(kept),
        tag=tag,
        **figures,
    )


def _check_tag(destination: Store, tag: str | None, identity: str) -> None:
    """Find out before anything is sent what would go wrong at the end."""
    other = None if tag is None else destination.tags().get(tag)
    if other not in (None, identity):
        raise TagExists(
            f"tag {tag} already names snapshot {str(other)[:12]} in {destination.url} and never moves; "
            "choose another name"
        )


def _send(
    source: Store,
    destination: Store,
    rows: Sequence[Row],
    missing: Sequence[Row],
    message: str,
    progress: Progress,
) -> dict[str, int]:
    """Bring the `missing` of `rows` over and commit them; return what a report says about that."""
    name = f"copy-{sha256(canonical_json(sorted(row.version for row in rows)))[:40]}"
    build = destination.build(name, owner=message)
    finished = build.receipts()
    receipts: list[Receipt] = []
    todo: list[Parcel] = []
    for parcel in parcels_of(source.backend, missing):
        receipt = finished.get(parcel.unit)
        if receipt is None:
            todo.append(parcel)
        else:
            receipts.append(receipt)
    count = {"packs_found": len(receipts), "packs_sent": 0, "packs_made": 0, "bytes": 0}
    done, total = 0, sum(parcel.size for parcel in todo)
    work = partial(_send_parcel, source.backend, destination.backend, build)
    for parcel, (receipt, sent) in convey(todo, work):
        receipts.append(receipt)
        done += parcel.size
        count["bytes"] += sent
        count["packs_found" if not sent else "packs_sent" if parcel.pack else "packs_made"] += 1
        progress(done, total, packs=len(receipts))
    build.commit(receipts, message=message, run={"copied_from": source.url})
    return count


def _send_parcel(source: Backend, destination: Backend, build: Build, parcel: Parcel) -> tuple[Receipt, int]:
    """Bring one pack over, unless it is there, and write the part that names it; return the bytes sent."""
    found = _found(destination, parcel)
    pack = found or pack_parcel(source, parcel)
    with build.writer(parcel.unit) as writer:
        writer.add_pack(pack, stored=found is not None)
        return writer.finish(), 0 if found else len(pack.data)


def _found(destination: Backend, parcel: Parcel) -> SealedPack | None:
    """Return the pack if the destination has it already, whole and intact."""
    key = pack_key(parcel.pack)
    info = destination.info(key) if parcel.pack else None
    if info is None or info.size != parcel.size:
        return None
    try:
        return checked_pack(destination.read(key), parcel.pack, parcel.rows)
    except (IntegrityError, KeyMissing):
        return None
