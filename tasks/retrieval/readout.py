"""The readout: what the memories of a snapshot decode to, kept as one token stream beside its element
table.

Charts point into this stream and hits are verified against it, so retrieval answers from the stored
memories and never from the original text. It is a cache: `audit` compares its record counts and checksums
with a fresh decoding.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch

from tasks.codec import Codec
from tasks.retrieval import arrays

_DIGEST_BYTES = 32
_WHAT = "retrieval readout"


@dataclass(frozen=True)
class MemoryRecord:
    """One memory before decoding: `cells_NC` float32 tensor, `length` real tokens in its N blocks."""

    name: str
    version: str
    cells_NC: torch.Tensor
    length: int


@dataclass(frozen=True)
class DecodedMemory:
    """One memory after decoding: `tokens_L` uint16, and `key_C` float32, the mean of its cells."""

    name: str
    version: str
    tokens_L: np.ndarray
    key_C: np.ndarray


@dataclass(frozen=True)
class Readout:
    """Elements in name order. Element e owns tokens_N[start_E1[e]:start_E1[e + 1]] (uint16, int64)."""

    names: tuple[str, ...]
    versions: tuple[str, ...]
    checksum_ED: np.ndarray
    start_E1: np.ndarray
    tokens_N: np.ndarray

    @classmethod
    def of(cls, memories: Iterable[DecodedMemory]) -> "Readout":
        """The readout of decoded memories, whatever their order; names must differ."""
        rows = sorted(memories, key=lambda memory: memory.name)
        names = tuple(row.name for row in rows)
        assert len(set(names)) == len(names), "a snapshot names every element once"
        start_E1 = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row.tokens_L) for row in rows], out=start_E1[1:])
        tokens = [row.tokens_L.astype(np.uint16) for row in rows]
        digests = b"".join(token_checksum(row.tokens_L) for row in rows)
        return cls(
            names=names,
            versions=tuple(row.version for row in rows),
            checksum_ED=np.frombuffer(digests, dtype=np.uint8).reshape(-1, _DIGEST_BYTES),
            start_E1=start_E1,
            tokens_N=np.concatenate([*tokens, np.empty(0, dtype=np.uint16)]),
        )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Element number by name."""
        return {name: row for row, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        """Tokens of the whole stream."""
        return len(self.tokens_N)

    def at(self, position: np.ndarray) -> np.ndarray:
        """The tokens (uint16) at stream positions, in their shape."""
        found: np.ndarray = self.tokens_N[position]
        return found

    def tokens(self, element: int) -> np.ndarray:
        """Decoded tokens (uint16) of one element."""
        view: np.ndarray = self.tokens_N[self.start_E1[element] : self.start_E1[element + 1]]
        return view

    def element_of(self, position_H: np.ndarray) -> np.ndarray:
        """Element numbers (int64) that own stream positions."""
        return np.searchsorted(self.start_E1, position_H, side="right") - 1

    def to_bytes(self) -> bytes:
        """Safetensors payload."""
        name_bytes, name_offsets = arrays.pack_strings(self.names)
        versions = b"".join(bytes.fromhex(version) for version in self.versions)
        return arrays.to_bytes(
            {
                "checksum": self.checksum_ED,
                "name.bytes": name_bytes,
                "name.offset": name_offsets,
                "start": self.start_E1,
                "tokens": self.tokens_N,
                "version": np.frombuffer(versions, dtype=np.uint8).reshape(-1, _DIGEST_BYTES),
            },
            what=_WHAT,
            record={"elements": len(self), "tokens": len(self.tokens_N)},
        )

    @classmethod
    def from_bytes(cls, payload: bytes | memoryview) -> "Readout":
        """Views into the payload; raises BadPayload where it is not a readout."""
        parts, _ = arrays.from_bytes(payload, what=_WHAT)
        with arrays.reading(_WHAT):
            names = arrays.unpack_strings(
                arrays.part(parts, "name.bytes", np.uint8, None),
                arrays.part(parts, "name.offset", np.int64, None),
            )
            if any(one >= other for one, other in pairwise(names)):
                raise ValueError("the names of its elements do not rise")
            count = len(names)
            tokens_N = arrays.part(parts, "tokens", np.uint16, None)
            start_E1 = arrays.part(parts, "start", np.int64, count + 1)
            arrays.check_bounds(start_E1, len(tokens_N), "the starts of elements")
            version_ED = arrays.part(parts, "version", np.uint8, count, _DIGEST_BYTES)
            return cls(
                names=names,
                versions=tuple(row.tobytes().hex() for row in version_ED),
                checksum_ED=arrays.part(parts, "checksum", np.uint8, count, _DIGEST_BYTES),
                start_E1=start_E1,
                tokens_N=tokens_N,
            )


def token_checksum(tokens_L: np.ndarray) -> bytes:
    """SHA-256 of the tokens as little-endian uint16."""
    return hashlib.sha256(tokens_L.astype("<u2").tobytes()).digest()


@torch.no_grad()
def decode(codec: Codec, records: Iterable[MemoryRecord], tile: int) -> Iterator[DecodedMemory]:
    """Decode memories with the frozen codec, `tile` blocks at a time whatever the documents' lengths.

    Every call of the decoder has the same shape (the last one is filled up with zeros), so an element's
    tokens do not depend on its neighbours in the batch. At most a tile beyond the longest document is held.
    """
    waiting: list[tuple[MemoryRecord, int]] = []
    cells: list[torch.Tensor] = []
    parents: list[torch.Tensor] = []
    decoded: list[np.ndarray] = []
    for record in records:
        waiting.append((record, len(record.cells_NC)))
        cells.extend(record.cells_NC)
        coarse = codec.parents(record.cells_NC)
        parents.extend(coarse if coarse is not None else ())
        while len(cells) >= tile:
            decoded.extend(_decode_tile(codec, cells[:tile], parents[:tile], tile))
            del cells[:tile], parents[:tile]
        yield from _finished(waiting, decoded)
    if cells:
        decoded.extend(_decode_tile(codec, cells, parents, tile))
    yield from _finished(waiting, decoded)


def _decode_tile(
    codec: Codec, cells: list[torch.Tensor], parents: list[torch.Tensor], tile: int
) -> list[np.ndarray]:
    tile_BC = torch.zeros(tile, cells[0].shape[0])
    tile_BC[: len(cells)] = torch.stack(cells)
    parents_BPC = None
    if parents:
        parents_BPC = torch.zeros(tile, *parents[0].shape)
        parents_BPC[: len(parents)] = torch.stack(parents)
    tokens_BT = codec.logits(tile_BC, parents_BPC).argmax(-1)
    return list(tokens_BT[: len(cells)].numpy().astype(np.uint16))


def _finished(waiting: list[tuple[MemoryRecord, int]], decoded: list[np.ndarray]) -> Iterator[DecodedMemory]:
    while waiting and waiting[0][1] <= len(decoded):
        record, blocks = waiting.pop(0)
        tokens_L = np.concatenate([*decoded[:blocks], np.empty(0, dtype=np.uint16)])[: record.length]
        del decoded[:blocks]
        yield decoded_before(record, tokens_L)


def decoded_before(record: MemoryRecord, tokens_L: np.ndarray) -> DecodedMemory:
    """A memory whose tokens are known."""
    # float64: the mean of a long document's cells must not depend on the order of summation.
    key_C = record.cells_NC.numpy().astype(np.float64).sum(0) / max(len(record.cells_NC), 1)
    return DecodedMemory(record.name, record.version, tokens_L, key_C.astype(np.float32))


@dataclass(frozen=True)
class ReadoutAudit:
    """What an audit of the readout cache found; the three lists hold element names."""

    elements: int
    tokens: int
    damaged: tuple[str, ...]
    changed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every count and checksum agreed."""
        return not (self.damaged or self.changed or self.missing)


def audit(readout: Readout, again: Iterable[DecodedMemory] | None = None) -> ReadoutAudit:
    """Check record counts and checksums of a readout, and against a second decoding where one is given.

    `damaged`: cached tokens that do not have their recorded checksum. `changed`: elements that decode to
    other tokens or another version now. `missing`: elements on one side only.
    """
    damaged = [
        name
        for row, name in enumerate(readout.names)
        if token_checksum(readout.tokens(row)) != readout.checksum_ED[row].tobytes()
    ]
    changed: list[str] = []
    missing: list[str] = []
    if again is not None:
        unseen = set(readout.names)
        for memory in again:
            if memory.name not in unseen:
                missing.append(memory.name)
                continue
            unseen.remove(memory.name)
            row = readout.row_of[memory.name]
            recorded = (readout.checksum_ED[row].tobytes(), readout.versions[row])
            if (token_checksum(memory.tokens_L), memory.version) != recorded:
                changed.append(memory.name)
        missing.extend(unseen)
    return ReadoutAudit(
        elements=len(readout),
        tokens=len(readout.tokens_N),
        damaged=tuple(damaged),
        changed=tuple(sorted(changed)),
        missing=tuple(sorted(missing)),
    )
