"""Blocks of history: copies of many log entries in one object, read only by who asks for the past.

A checkpoint names the blocks that cover the entries before it, so that opening a store reads none of them.
What a commit may have to know of the past is whether a snapshot was pinned before: for that a block's
description holds a key table of the snapshots that its entries pinned.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from store.backend import Backend
from store.errors import IntegrityError
from store.format import check_digest, history_key, is_digest, sha256
from store.keytable import KeyTable, encode_key_table, version_keys
from store.parquet import UNREADABLE, check_columns, encode_table, read_parquet

_SCHEMA = pa.schema([("sequence", pa.int64()), ("entry", pa.string())])


@dataclass(frozen=True, slots=True)
class Block:
    """Entries `first` to `last` of the log in one object; `pins` is a key table of `pinned` snapshots."""

    digest: str
    first: int
    last: int
    pinned: int
    pins: bytes

    def __len__(self) -> int:
        return self.last - self.first + 1

    def may_pin(self, snapshot: str) -> bool:
        """Tell whether an entry of the block may have pinned `snapshot`: False is certain."""
        return bool(self.pinned) and len(KeyTable(self.pins, self.pinned).find(int(snapshot[:16], 16))) > 0

    def to_list(self) -> list[Any]:
        """Return JSON values that `from_list` takes back."""
        return [self.digest, self.first, self.last, self.pinned, base64.b64encode(self.pins).decode()]

    @classmethod
    def from_list(cls, values: Any) -> Block:
        """Rebuild a block from `to_list`; raises `ValueError` for values that describe none."""
        if not isinstance(values, list) or [type(value) for value in values] != [str, int, int, int, str]:
            raise ValueError("not a block")
        digest, first, last, pinned, packed = values
        try:
            pins = base64.b64decode(packed, validate=True)
        except binascii.Error as error:
            raise ValueError("not base64") from error
        if not is_digest(digest) or not 0 < first <= last or not 0 <= pinned <= last - first + 1:
            raise ValueError("not a block")
        KeyTable(pins, pinned)
        return cls(digest, first, last, pinned, pins)


def encode_block(first: int, entries: Sequence[bytes]) -> tuple[Block, bytes]:
    """Return the description and the content of the block that copies `entries`, from number `first` on."""
    last = first + len(entries) - 1
    texts = [entry.decode() for entry in entries]
    data = encode_table(pa.table({"sequence": range(first, last + 1), "entry": texts}, schema=_SCHEMA))
    snapshots = sorted({json.loads(text)["snapshot"] for text in texts} - {""})
    pins, _ = encode_key_table(version_keys(snapshots))
    return Block(sha256(data), first, last, len(snapshots), pins), data


def read_block(backend: Backend, block: Block) -> list[bytes]:
    """Return the exact bytes of the entries in a block.

    Raises `IntegrityError` if it is damaged, `KeyMissing` if it is gone; the log itself still has them.
    """
    return decode_block(backend.read(history_key(block.digest)), block)


def decode_block(data: bytes, block: Block) -> list[bytes]:
    """Decode the content of a block; raises `IntegrityError` if it is not what `block` describes."""
    key = history_key(block.digest)
    check_digest(data, block.digest, key, holds="block of log entries")
    try:
        table = read_parquet(pa.BufferReader(data))
        check_columns(table, _SCHEMA)
        numbers = range(block.first, block.first + len(table))
        if numbers.stop != block.last + 1 or table["sequence"].to_pylist() != list(numbers):
            raise ValueError("other entries")
    except UNREADABLE as error:
        raise IntegrityError(f"{key} is not a block of log entries; delete that object") from error
    return [entry.encode() for entry in table["entry"].to_pylist()]
