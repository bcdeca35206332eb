"""Checkpoints as they are stored: what lets a store open without replaying its history.

`log/checkpoint-<digits>-<sha256>.json` says, for the log up to one entry, which index files (segments) hold
all visible rows, which blocks hold the entries, and what was removed. It is derived data: a damaged or
missing one costs time, because the log and the index files that its entries name say all that it says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from store.backend import Backend
from store.directory import MAX_INDEX_ROWS, Lead
from store.entry import MAX_SEQUENCE
from store.errors import IntegrityError, KeyMissing
from store.format import (
    CHECKPOINT_PREFIX,
    check_digest,
    checkpoint_key,
    is_digest,
    seal,
    sha256,
    unseal,
)
from store.history import Block
from store.region import Region, is_region
from store.removals import Removals

_FIELDS: dict[str, type] = {
    "bundles": list,
    "history": list,
    "plain": bool,
    "removals": dict,
    "segments": list,
    "sequence": int,
    "tip": str,
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Segment:
    """An index file that holds rows of commits up to `commit`, which is that of rows that do not say.

    `lead` is where its directory is, None if it has none or its directory was not looked at.
    """

    index: str
    rows: int
    commit: int
    lead: Lead | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """Copies of the version key tables of several segments in one object, in the order of `members`.

    Segments that will not be merged any more are bundled, so that looking for a version takes few requests
    however many there are.
    """

    digest: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a store after entry `sequence`, whose digest is `tip`.

    `plain` tells that no entry did anything but publish and pin, so that no version has two rows. `key` is
    where the checkpoint was read.
    """

    sequence: int = 0
    tip: str = ""
    segments: tuple[Segment, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    history: tuple[Block, ...] = ()
    removals: Removals = field(default_factory=Removals)
    plain: bool = True
    key: str = ""


def encode_checkpoint(checkpoint: Checkpoint) -> tuple[str, bytes]:
    """Return the key and the content of a checkpoint."""
    data = seal(
        {
            "bundles": [[bundle.digest, list(bundle.members)] for bundle in checkpoint.bundles],
            "history": [block.to_list() for block in checkpoint.history],
            "plain": checkpoint.plain,
            "removals": checkpoint.removals.to_dict(),
            "segments": [_encode_segment(segment) for segment in checkpoint.segments],
            "sequence": checkpoint.sequence,
            "tip": checkpoint.tip,
        }
    )
    return checkpoint_key(checkpoint.sequence, sha256(data)), data


def decode_checkpoint(data: bytes, key: str) -> Checkpoint:
    """Decode a checkpoint, checked against the digest in its key; raises `IntegrityError` if it is none."""
    digest = key.removesuffix(".json").rpartition("-")[2]
    if not is_digest(digest):
        raise IntegrityError(f"{key} is not the name of a checkpoint; delete that object")
    record = unseal(check_digest(data, digest, key, holds="log checkpoint"), key, _FIELDS)
    try:
        checkpoint = Checkpoint(
            sequence=record["sequence"],
            tip=record["tip"],
            segments=tuple(map(_decode_segment, record["segments"])),
            bundles=tuple(map(_decode_bundle, record["bundles"])),
            history=tuple(map(Block.from_list, record["history"])),
            removals=Removals.from_dict(record["removals"]),
            plain=record["plain"],
            key=key,
        )
        ends = [0, *(block.last for block in checkpoint.history)]
        starts = [*(block.first for block in checkpoint.history), checkpoint.sequence + 1]
        if key != checkpoint_key(checkpoint.sequence, digest):
            raise ValueError("the number of another")
        if checkpoint.sequence > MAX_SEQUENCE:
            raise ValueError("the number of no entry")
        if not is_digest(checkpoint.tip) or [end + 1 for end in ends] != starts:
            raise ValueError("not all of the log")
    except ValueError as error:
        raise IntegrityError(f"{key} does not describe a store; delete that object") from error
    return checkpoint


def checkpoints(backend: Backend) -> Iterator[Checkpoint]:
    """Yield the intact checkpoints of a store, newest first; damaged ones are logged and left out."""
    for item in backend.list(CHECKPOINT_PREFIX):
        if not item.key.endswith(".json"):  # earlier versions wrote Parquet
            continue
        try:
            yield decode_checkpoint(backend.read(item.key), item.key)
        except (IntegrityError, KeyMissing) as error:
            _log.warning("a checkpoint of %s is left out, opening takes longer: %s", backend.url, error)


def _decode_bundle(values: Any) -> Bundle:
    if not isinstance(values, list) or [type(value) for value in values] != [str, list]:
        raise ValueError("not a bundle")
    digest, members = values
    if not all(isinstance(name, str) and is_digest(name) for name in [digest, *members]):
        raise ValueError("not a bundle")
    return Bundle(digest, tuple(members))


def _encode_segment(segment: Segment) -> list[Any]:
    lead: list[Any] = []
    if segment.lead is not None:
        lead = [
            [region.offset, region.length, region.digest]
            for region in (segment.lead.header, segment.lead.version_keys)
        ]
    return [segment.index, segment.rows, segment.commit, lead]


def _decode_segment(values: Any) -> Segment:
    if not isinstance(values, list) or [type(value) for value in values] != [str, int, int, list]:
        raise ValueError("not a segment")
    index, rows, commit, lead = values
    if not is_digest(index) or not 0 <= rows <= MAX_INDEX_ROWS or commit <= 0:
        raise ValueError("not a segment")
    if not lead:
        return Segment(index, rows, commit)
    if (
        len(lead) != 2
        or not all(map(is_region, lead))
        or any(region[1] > 256 * rows + 2**20 for region in lead)
    ):
        raise ValueError("not the lead of a segment")
    return Segment(index, rows, commit, Lead(*(Region(*region) for region in lead)))
