"""Exporting a snapshot, or a choice of its elements, as one tar file or folder that opens as a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from store.format import pack_key, sha256
from store.rows import Row
from store.signature import read_signatures
from store.snapshot import Snapshot, snapshot_id
from store.store import Store
from store.transfer.choice import Choice
from store.transfer.layout import index_of, log_of, names_of, snapshot_of
from store.transfer.parcel import convey, pack_parcel, parcels_of
from store.transfer.sink import FolderSink, TarSink, sink_at
from store.verify import Progress, silent


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was exported: `snapshot` is in the export, `source` is what it was taken from.

    `bytes` counts packs only; `digest` is the SHA-256 of a tar file, empty for a folder.
    """

    snapshot: str
    source: str
    path: str
    elements: int
    packs: int
    bytes: int
    signatures: int
    tag: str | None
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def export_snapshot(
    source: Store,
    snapshot: Snapshot,
    path: Path,
    *,
    choice: Choice | None = None,
    tag: str | None = None,
    progress: Progress = silent,
) -> ExportReport:
    """Write `snapshot` of `source`, or what `choice` takes of it, to `path`: a tar file if that ends in .tar.

    Every byte is checked on its way. The same snapshot of the same store, with the same signatures and tag,
    always gives the same tar file, byte by byte. A whole snapshot keeps its id and its signatures.

    Raises `IntegrityError` for anything damaged or forged, `MissingRequirement` for an incomplete choice,
    `InputError` if there is something at `path`; nothing is there then, or what was there before.
    """
    signatures = list(read_signatures(source.backend, snapshot.id))
    rows = (choice or Choice()).rows(snapshot)
    identity = snapshot_id((row.name, row.version) for row in rows)
    kept = signatures if identity == snapshot.id else []
    names = names_of(identity, tag)
    with sink_at(path) as sink:
        _put(sink, names)
        sizes, placed = _write_packs(source, rows, sink, progress)
        index = index_of(placed, sizes)
        _put(sink, index)
        _put(sink, snapshot_of(placed))
        _put(sink, log_of(identity, sha256(*index.values()), placed, sizes))
        _put(sink, {signature.storage_key: signature.encode() for signature in kept})
        digest = sink.finish()
    return ExportReport(
        identity,
        snapshot.id,
        str(path),
        elements=len(rows),
        packs=len(sizes),
        bytes=sum(sizes.values()),
        signatures=len(kept),
        tag=tag,
        digest=digest,
    )


def _write_packs(
    source: Store, rows: Sequence[Row], sink: TarSink | FolderSink, progress: Progress
) -> tuple[dict[str, int], list[Row]]:
    """Write the packs that hold `rows`; return their sizes, and the rows where they now lie."""
    parcels = parcels_of(source.backend, rows)
    done, total = 0, sum(parcel.size for parcel in parcels)
    placed: list[Row] = []
    sizes: dict[str, int] = {}
    for parcel, pack in convey(parcels, partial(pack_parcel, source.backend)):
        sink.put(pack_key(pack.digest), pack.data)
        placed += pack.rows
        sizes[pack.digest] = len(pack.data)
        done += parcel.size
        progress(done, total, packs=len(sizes))
    return sizes, placed


def _put(sink: TarSink | FolderSink, objects: Mapping[str, bytes]) -> None:
    for key, data in objects.items():
        sink.put(key, data)
