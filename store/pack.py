"""Packs: immutable objects of 32-64 MiB that hold many payloads in self-describing frames.

    magic   b"CELLARP1"
    frame   b"FRAM"  u32 head length  u64 payload length  sha256(head)  sha256(payload)  head  payload
    ...
    footer  JSON {"frames": [[frame offset, payload offset, payload length], ...]}
    tail    u64 footer length  sha256(footer)  b"CELLARE1"

Integers are little-endian. The head is canonical JSON with the record, facts, dtype and shape, so that an
index that was lost can be rebuilt from packs alone. The key of a pack is the SHA-256 of all its bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from store.backend import Body, HashedBytes
from store.element import MAX_RECORD_BYTES, Element, check_full_name, describe_tensors, record_of
from store.errors import IntegrityError, InvalidPayload
from store.format import RESTORE, canonical_json, is_digest, pack_key, sha256
from store.rows import Row

MAGIC = b"CELLARP1"
FRAME = b"FRAM"
END = b"CELLARE1"
TARGET_BYTES = 32 * 1024**2
"""A pack is closed once it holds this much; a payload of more than this gets a pack of its own."""

_FRAME = struct.Struct("<4sIQ32s32s")
FRAME_BYTES = _FRAME.size
"""What a frame takes beside its head and payload."""
_TAIL = struct.Struct("<Q32s8s")
MAX_HEAD_BYTES = MAX_RECORD_BYTES + 1024**2
"""A head holds little beside what is limited by itself; the footer of a pack is smaller than that, too."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as read back: the record and facts of an element, and where its payload lies in the pack."""

    head: dict[str, Any]
    head_digest: str
    payload_digest: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SealedPack:
    """A finished pack: its bytes, digest and the rows of the elements it holds."""

    digest: str
    data: Body
    rows: list[Row]


def head_of(row: Row) -> bytes:
    """Return the head of the frame that holds the element which `row` describes."""
    record = record_of(row.name, row.media, row.digest, row.length, row.requires, row.provenance)
    return _head(row.dtype, canonical_json(row.facts), canonical_json(record), row.shape)


def _head(dtype: str, facts: bytes, record: bytes, shape: Sequence[int]) -> bytes:
    """Join what is canonical JSON already, so that it is not encoded again."""
    ends = canonical_json(dtype), canonical_json(shape)
    return b'{"dtype":%b,"facts":%b,"record":%b,"shape":%b}' % (ends[0], facts, record, ends[1])


def row_of(frame: Frame, pack: str) -> Row:
    """Return the row of the element in a frame of pack `pack`, the opposite of `head_of`.

    Raises `IntegrityError` if the head is not one that `head_of` writes, or describes another payload.
    """
    try:
        record, shape = frame.head["record"], tuple(frame.head["shape"])
        row = Row(
            name=check_full_name(f"{record['kind']}/{record['name']}"),
            kind=record["kind"],
            version=sha256(canonical_json(record)),
            digest=record["payload"]["digest"],
            pack=pack,
            offset=frame.offset,
            length=frame.length,
            media=record["media"],
            requires=tuple(record["requires"]),
            provenance=record["provenance"],
            facts=frame.head["facts"],
            dtype=frame.head["dtype"],
            shape=shape,
        )
        right = (
            row.digest == frame.payload_digest
            and all(type(text) is str for text in (row.media, row.dtype, row.recipe, *row.requires))
            and all(map(is_digest, row.requires))
            and all(type(size) is int and 0 <= size < 2**63 for size in shape)
            and isinstance(row.facts, dict)
            and canonical_json(frame.head) == head_of(row)
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        right = False
    if not right:
        raise IntegrityError(
            f"{pack_key(pack)} holds something at byte {frame.offset} that no store wrote; {RESTORE}"
        )
    return row


def frame_size(row: Row) -> int:
    """Return the bytes that the frame of this element takes in a pack."""
    return _FRAME.size + len(head_of(row)) + row.length


class PackBuilder:
    """Collects frames in memory; at most twice `TARGET_BYTES` unless one payload alone is larger."""

    def __init__(self, buffer: HashedBytes | None = None) -> None:
        """Begin a pack, in the `buffer` of an earlier one if given: fresh memory costs more than a hash."""
        self._data = HashedBytes() if buffer is None else buffer
        self._data.sha256 = ""
        self._size = 0
        self._frames: list[list[int]] = []
        self._elements: list[dict[str, Any]] = []
        self._sealed: SealedPack | None = None
        self._append(MAGIC)

    def __len__(self) -> int:
        return self._size

    @property
    def empty(self) -> bool:
        """True until the first element was added."""
        return not self._frames

    def add(self, element: Element) -> None:
        """Append one element; raises `InvalidPayload` if a safetensors payload is malformed."""
        dtype, shape = describe_tensors(element.media, element.payload, element.full_name)
        head = _head(dtype, element.facts_json, element.record_json, shape)
        if len(head) > MAX_HEAD_BYTES:
            raise InvalidPayload(
                f"{element.full_name}: its media type, or dtype or shape of its largest tensor, is too long"
            )
        length, digest = len(element.payload), bytes.fromhex(element.digest)
        start = self._size
        self._append(_FRAME.pack(FRAME, len(head), length, hashlib.sha256(head).digest(), digest))
        self._append(head)
        offset = self._size
        self._append(element.payload)
        self._frames.append([start, offset, length])
        self._elements.append(
            {
                "name": element.full_name,
                "kind": element.kind,
                "version": element.version,
                "digest": element.digest,
                "offset": offset,
                "length": length,
                "media": element.media,
                "requires": element.requires,
                "provenance": element.provenance,
                "facts": element.facts,
                "dtype": dtype,
                "shape": shape,
            }
        )

    def seal(self) -> SealedPack:
        """Append the footer, read every frame back, and return the pack under its digest.

        Reading back catches memory errors and bugs before anything is uploaded; raises `IntegrityError`. The
        same pack is returned if called again, as after an upload that failed.
        """
        if self._sealed is not None:
            return self._sealed
        footer = canonical_json({"frames": self._frames})
        self._append(footer)
        self._append(_TAIL.pack(len(footer), hashlib.sha256(footer).digest(), END))
        del self._data[self._size :]  # what an earlier pack left in the buffer
        digest = sha256(self._data)
        rows = [Row(pack=digest, **element) for element in self._elements]
        found = [(frame.payload_digest, frame.offset, frame.length) for frame in frames(self._data, digest)]
        if found != [(row.digest, row.offset, row.length) for row in rows]:
            raise IntegrityError(
                f"pack {digest} does not hold what was put into it; check this machine's memory"
            )
        self._data.sha256 = digest
        self._sealed = SealedPack(digest, self._data, rows)
        return self._sealed

    def _append(self, piece: bytes) -> None:
        end = self._size + len(piece)
        self._data[self._size : end] = piece
        self._size = end


def frames(data: bytes | bytearray | memoryview, name: str) -> Iterator[Frame]:
    """Yield every frame of a whole pack, each checked against its digests.

    `name` is used in errors. Raises `IntegrityError` at the first byte that is not as written, including
    magic, footer and anything between frames.
    """
    view = memoryview(data)
    starts = _footer(view, name)
    position = len(MAGIC)
    for start, offset, length in starts:
        if start != position or start + _FRAME.size > len(view):
            raise IntegrityError(f"pack {name} is damaged: its footer does not match its frames")
        magic, head_length, payload_length, head_digest, payload_digest = _FRAME.unpack_from(view, start)
        head = view[start + _FRAME.size : start + _FRAME.size + head_length]
        payload = view[offset : offset + length]
        position = offset + length
        if (
            magic != FRAME
            or payload_length != length
            or start + _FRAME.size + head_length != offset
            or hashlib.sha256(head).digest() != head_digest
            or hashlib.sha256(payload).digest() != payload_digest
        ):
            raise IntegrityError(f"pack {name} is damaged: the frame at byte {start} fails its checksum")
        yield Frame(_json_object(head, name), head_digest.hex(), payload_digest.hex(), offset, length)
    if position != len(view) - _TAIL.size - _TAIL.unpack_from(view, len(view) - _TAIL.size)[0]:
        raise IntegrityError(f"pack {name} is damaged: bytes between the last frame and the footer")


def _footer(view: memoryview, name: str) -> list[list[int]]:
    if len(view) < len(MAGIC) + _TAIL.size or view[: len(MAGIC)] != MAGIC:
        raise IntegrityError(f"pack {name} is damaged: it does not start as a pack does")
    length, digest, end = _TAIL.unpack_from(view, len(view) - _TAIL.size)
    start = len(view) - _TAIL.size - length
    footer = view[max(start, 0) : len(view) - _TAIL.size]
    if end != END or start < len(MAGIC) or hashlib.sha256(footer).digest() != digest:
        raise IntegrityError(f"pack {name} is damaged: its footer fails its checksum")
    entries = _json_object(footer, name).get("frames")
    if not isinstance(entries, list) or not all(map(_is_place, entries)):
        raise IntegrityError(f"pack {name} is damaged: its footer lists no frames")
    return entries


def _is_place(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 3 and all(type(number) is int for number in entry)


def _json_object(text: memoryview, name: str) -> dict[str, Any]:
    """Decode a head or the footer: its checksum shows that it is whole, not that a store wrote it."""
    try:
        value = json.loads(bytes(text)) if len(text) <= MAX_HEAD_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise IntegrityError(f"pack {name} is damaged: one of its frames or its footer holds no record")
    return value
