"""Where the column chunks of a Parquet file lie, read from the bytes of its footer.

pyarrow's own accessor of a column chunk is not used, because it ends the whole process where a footer
contradicts itself, for instance in size statistics that do not fit the schema; a file may be hostile, and
must cost one error. So this walks over the footer, which is a struct of Thrift's compact protocol, takes the
few numbers that are needed and skips everything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_Shape = dict[int, Any]
"""The wanted fields of a struct: None for a number, a shape for a struct, [shape] for a list of structs."""

_META: _Shape = {7: None, 9: None, 11: None}
"""Of a `ColumnMetaData`: the compressed size, the offsets of the first data page and the dictionary page."""
_FILE: _Shape = {4: [{1: [{3: _META}]}]}
"""Of a `FileMetaData`: the row groups, of these the columns, of these the metadata."""

_INT16, _INT32, _INT64, _BINARY, _LIST, _STRUCT = 4, 5, 6, 8, 9, 12
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of values that have a fixed size: true, false, a byte, a double. Parquet has no sets and no maps."""

_MAGIC = b"PAR1"
_TAIL = 4 + len(_MAGIC)
"""Bytes behind a footer."""
_MAX_BYTES = 2**26
_MAX_ITEMS = 2**16
_MAX_DEPTH = 12
_MAX_DIGITS = 10


class Chunk(NamedTuple):
    """The bytes that hold one column of one row group."""

    offset: int
    length: int


def read_chunks(data: bytes) -> list[list[Chunk]]:
    """Return the column chunks of each row group of the Parquet file `data`.

    Raises `ValueError` if its footer is malformed or has a form that no writer gives it.
    """
    end = len(data) - _TAIL
    start = end - int.from_bytes(data[-_TAIL : -len(_MAGIC)], "little")
    if not 0 <= start < end <= start + _MAX_BYTES or not data.endswith(_MAGIC):
        raise ValueError("not a Parquet footer")
    try:
        file, used = _struct(data[start:end], 0, _FILE, _MAX_DEPTH)
        chunks = [[_chunk(column[3]) for column in group[1]] for group in file[4]]
    except (IndexError, KeyError) as error:
        raise ValueError("a Parquet footer that lacks something") from error
    if start + used != end:
        raise ValueError("a Parquet footer of another length")
    return chunks


def _chunk(meta: dict[int, int]) -> Chunk:
    chunk = Chunk(min(meta[9], meta.get(11, meta[9])), meta[7])
    if min(chunk) < 0:
        raise ValueError("a column chunk of negative size")
    return chunk


def _struct(data: bytes, at: int, shape: _Shape, depth: int) -> tuple[dict[int, Any], int]:
    """Return the wanted fields of the struct at `at`, and where it ends."""
    found: dict[int, Any] = {}
    field = 0
    while kind := (head := data[at]) & 15:
        at += 1
        if head > 15:
            field += head >> 4
        else:
            number, at = _natural(data, at)
            if number & 1 or number >> 1 <= field:  # else one could be there twice
                raise ValueError("a Parquet footer whose fields are out of order")
            field = number >> 1
        if field in shape:
            found[field], at = _value(data, at, kind, shape[field], depth - 1)
        elif _INT16 <= kind <= _INT64:  # most fields are numbers, and a call costs more than this
            while data[at] > 127:
                at += 1
            at += 1
        else:
            at = _skip(data, at, kind, depth - 1)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, wanted: Any, depth: int) -> tuple[Any, int]:
    """Return the wanted value at `at`, and where it ends."""
    match wanted:
        case None if kind == _INT64:
            number, at = _natural(data, at)
            return number >> 1 ^ -(number & 1), at
        case dict() if kind == _STRUCT:
            return _struct(data, at, wanted, depth)
        case [shape] if kind == _LIST:
            count, kind, at = _list(data, at)
            if kind == _STRUCT and count <= _MAX_ITEMS:
                values = []
                for _ in range(count):
                    value, at = _struct(data, at, shape, depth)
                    values.append(value)
                return values, at
    raise ValueError("a Parquet footer with a field of another type")


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where the value at `at` ends, which may be behind `data`: nothing can be read there."""
    if not depth:
        raise ValueError("a Parquet footer that is nested too deep")
    if kind == _STRUCT:
        return _struct(data, at, {}, depth)[1]
    if kind == _BINARY:
        length, at = _natural(data, at)
        return at + length
    if kind == _LIST:
        count, kind, at = _list(data, at)
        if kind in _SIZES:
            return at + count * max(1, _SIZES[kind])
        for _ in range(count):
            at = _skip(data, at, kind, depth - 1)
        return at
    if _INT16 <= kind <= _INT64:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind in _SIZES:
        return at + _SIZES[kind]
    raise ValueError("a Parquet footer with a value of an unknown type")


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the length and the type of the list at `at`, and where its first value is."""
    head = data[at]
    count, at = (head >> 4, at + 1) if head < 0xF0 else _natural(data, at + 1)
    return count, head & 15, at


def _natural(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at `at`, and where it ends."""
    number = 0
    for place in range(_MAX_DIGITS):
        byte = data[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, at + place + 1
    raise ValueError("a Parquet footer with an endless number")
