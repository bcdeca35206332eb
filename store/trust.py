"""Whether a snapshot is what its id says, byte by byte, and who vouches for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing
from store.fetch import read_payload, sizes_of
from store.format import RESTORE, pack_key, snapshot_key
from store.prefetch import prefetched
from store.rows import Row
from store.signature import Signature, check_signed_by, put_signature, read_signature, sign, signature_keys
from store.snapshot import Snapshot, open_snapshot
from store.store import Store
from store.stream import stream_payloads
from store.verify import Progress, silent
from store.verify.report import Finding

_PARALLEL = 3
_MOST_BYTES = 96 * 1024**2
"""Payload bytes of the packs that are being read at one time; a larger pack is read alone."""


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """What was checked of one snapshot, who signed it, and everything that is wrong.

    `full` tells whether every payload was read; `bytes_read` counts payload bytes. `signers` are the ids of
    the keys with a right signature.
    """

    snapshot: str
    full: bool
    elements: int
    packs: int
    bytes_read: int
    signers: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "ok": self.ok}


def sign_snapshot(store: Store, snapshot: Snapshot, key: Ed25519PrivateKey) -> Signature:
    """Sign a snapshot and store the signature beside it; signing again with the same key changes nothing.

    Raises `IntegrityError` if the rows are not the set that the id names: nobody should vouch for that.
    """
    snapshot.rows()
    signature = sign(snapshot.id, key)
    put_signature(store.backend, signature)
    return signature


def verify_snapshot(
    store: Store,
    snapshot: Snapshot,
    *,
    keys: Sequence[Ed25519PublicKey] = (),
    full: bool = True,
    progress: Progress = silent,
) -> SnapshotReport:
    """Check a snapshot down to its payloads, all signatures on it, and that each of `keys` has signed it.

    Raises `StorageUnavailable` if the storage stops answering; whatever else is wrong is reported.
    """
    backend = store.backend
    signatures, findings = _signatures(backend, snapshot, keys)
    try:
        rows = open_snapshot(backend, snapshot.id).rows()  # past any cache, as all that is read here
    except IntegrityError as error:
        # Without the rows nothing else can be said of it.
        whole = Finding(snapshot_key(snapshot.id), str(error), snapshots=(snapshot.id,))
        findings = [*findings, whole]
        rows = []
    members: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        members[row.pack].append(row)
    findings += _check_rows(snapshot, rows)
    lacking = _check_packs(backend, snapshot, members)
    findings += lacking
    read = 0
    if full:
        gone = {finding.key for finding in lacking}
        there = {pack: held for pack, held in members.items() if pack_key(pack) not in gone}
        read, damaged = _check_payloads(backend, snapshot, there, progress)
        findings += damaged
    signers = tuple(signature.key_id for signature in signatures)
    return SnapshotReport(snapshot.id, full, len(rows), len(members), read, signers, tuple(findings))


def _signatures(
    backend: Backend, snapshot: Snapshot, keys: Sequence[Ed25519PublicKey]
) -> tuple[list[Signature], list[Finding]]:
    found: list[Signature] = []
    findings: list[Finding] = []
    for storage_key in signature_keys(backend, snapshot.id):
        try:
            found.append(read_signature(backend, storage_key, snapshot.id))
        except IntegrityError as error:
            findings.append(Finding(storage_key, str(error), snapshots=(snapshot.id,)))
    for key in keys:
        try:
            check_signed_by(found, key, snapshot.id)
        except IntegrityError as error:
            findings.append(Finding(snapshot_key(snapshot.id), str(error), snapshots=(snapshot.id,)))
    return found, findings


def _check_rows(snapshot: Snapshot, rows: Sequence[Row]) -> list[Finding]:
    """Find rows that describe something else than their version, or lack what they require."""
    versions = {row.version for row in rows}
    findings = []
    for row in rows:
        problem = ""
        if not row.is_authentic():
            problem = f"the rows describe {row.name} in a way that its version denies; {RESTORE}"
        elif not versions.issuperset(row.requires):
            problem = f"{row.name} requires a version that the snapshot lacks; get a complete copy"
        if problem:
            findings.append(_finding(snapshot, snapshot_key(snapshot.id), problem, [row]))
    return findings


def _check_packs(backend: Backend, snapshot: Snapshot, members: dict[str, list[Row]]) -> list[Finding]:
    """Find packs that are missing, or end before what they should hold."""
    packs = sorted(members)
    findings = []
    for pack, size in zip(packs, sizes_of(backend, [pack_key(pack) for pack in packs]), strict=True):
        end = max(row.offset + row.length for row in members[pack])
        if size is None or size < end:
            what = "is missing" if size is None else "is cut short"
            problem = f"{pack_key(pack)} {what}; {RESTORE}"
            findings.append(_finding(snapshot, pack_key(pack), problem, members[pack]))
    return findings


def _check_payloads(
    backend: Backend, snapshot: Snapshot, members: dict[str, list[Row]], progress: Progress
) -> tuple[int, list[Finding]]:
    """Read every payload; return how many bytes that were, and what is damaged."""
    read, findings = 0, []
    results = prefetched(
        partial(_damaged, backend),
        [sorted(members[pack], key=lambda row: row.offset) for pack in sorted(members)],
        threads=_PARALLEL,
        weigh=_bytes_of,
        limit=_MOST_BYTES,
    )
    total = sum(map(_bytes_of, members.values()))
    for rows, damaged in results:
        read += _bytes_of(rows)
        if damaged:
            key = pack_key(damaged[0].pack)
            problem = f"{key} is damaged: {len(damaged)} of {len(rows)} payloads; {RESTORE}"
            findings.append(_finding(snapshot, key, problem, damaged))
        progress(read, total, findings=len(findings))
    return read, findings


def _damaged(backend: Backend, rows: Sequence[Row]) -> tuple[Sequence[Row], list[Row]]:
    """Read the payloads of one pack and return those of its rows whose payload is not as published."""
    try:
        for _ in stream_payloads(backend, rows):
            pass
    except (IntegrityError, KeyMissing):
        return rows, [row for row in rows if not _is_intact(backend, row)]
    return rows, []


def _is_intact(backend: Backend, row: Row) -> bool:
    try:
        read_payload(backend, row)
    except (IntegrityError, KeyMissing):
        return False
    return True


def _bytes_of(rows: Iterable[Row]) -> int:
    return sum(row.length for row in rows)


def _finding(snapshot: Snapshot, key: str, problem: str, rows: Iterable[Row]) -> Finding:
    return Finding(key, problem, tuple(sorted(str(row.ref) for row in rows)), (snapshot.id,))
