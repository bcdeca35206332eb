"""Key tables: which rows of a large index file may hold a version or a recipe, in about 18 bits a key.

A key is the first 64 bits of a SHA-256, so keys are spread evenly. Sorted, the leading bits of a key are
nearly told by its rank: a table keeps, for every value of the leading bits (a bucket of about 16 keys), the
rank of its first key, and of every key only the next 16 bits. Looking for a key that is not there finds some
other one in about 1 of 4,000 cases. That is the size and use of a Bloom filter; but the table also says which
key it was, and making one is sorting, which Arrow does.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_MARK_BITS = 16
_BUCKET_BITS = 4
"""Binary logarithm of the number of keys that share a bucket."""


def version_keys(versions: Sequence[str]) -> array[int]:
    """Return the keys of versions, which are SHA-256 digests themselves."""
    return _integers(bytes.fromhex("".join([version[:16] for version in versions])))


def text_keys(texts: Iterable[str]) -> array[int]:
    """Return the keys of any texts."""
    return _integers(b"".join([hashlib.sha256(text.encode()).digest()[:8] for text in texts]))


def encode_key_table(keys: array[int]) -> tuple[bytes, list[int]]:
    """Return the table of `keys`, and the position in `keys` of every key by its rank in the table."""
    values = pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(keys)])
    order = pc.sort_indices(values)
    values = values.take(order)
    ranked = array("Q", values.buffers()[1].to_pybytes())
    bits = _bucket_bits(len(keys))
    step = 1 << (64 - bits)
    starts = array("I", [bisect_left(ranked, bucket * step) for bucket in range(1 << bits)])
    starts.append(len(keys))
    marks = pc.bit_wise_and(
        pc.shift_right(values, pa.scalar(64 - bits - _MARK_BITS, pa.uint64())),
        pa.scalar((1 << _MARK_BITS) - 1, pa.uint64()),
    )
    return _stored(starts) + _stored(array("H", marks.to_pylist())), order.to_pylist()


class KeyTable:
    """A table that was written by `encode_key_table`."""

    def __init__(self, data: bytes, count: int) -> None:
        """Take the table of `count` keys; raises `ValueError` if `data` is none."""
        self._bits = _bucket_bits(count)
        buckets = (1 << self._bits) + 1
        if len(data) != 4 * buckets + 2 * count:
            raise ValueError("not the size of a key table")
        self._starts = _loaded("I", data[: 4 * buckets])
        self._marks = _loaded("H", data[4 * buckets :])
        if max(self._starts) > count:
            raise ValueError("not the buckets of a key table")

    def find(self, key: int) -> range:
        """Return the ranks that `key` may have: none means that it is not there."""
        bucket = key >> (64 - self._bits) if self._bits else 0
        mark = (key >> (64 - self._bits - _MARK_BITS)) & ((1 << _MARK_BITS) - 1)
        start, end = self._starts[bucket], self._starts[bucket + 1]
        first = bisect_left(self._marks, mark, start, end)
        if first >= end or self._marks[first] != mark:
            return range(0)
        return range(first, bisect_right(self._marks, mark, first, end))


def encode_positions(positions: Sequence[int]) -> bytes:
    """Return positions by rank, as `decode_positions` takes them."""
    return _stored(array("I", positions))


def decode_positions(data: bytes, count: int) -> array[int]:
    """Return the positions by rank; raises `ValueError` if `data` does not hold `count` of them."""
    if len(data) != 4 * count:
        raise ValueError("not the size of a list of positions")
    return _loaded("I", data)


def _bucket_bits(count: int) -> int:
    return max(0, count.bit_length() - 1 - _BUCKET_BITS)


def _integers(data: bytes) -> array[int]:
    """Return big-endian 64-bit numbers, so that their order is that of the bytes."""
    numbers = array("Q", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _stored(numbers: array[int]) -> bytes:
    """Return numbers in the little-endian form of the file."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _loaded(code: str, data: bytes) -> array[int]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
