"""Rows: where each version lies and what it is; the tables of index, part and snapshot files.

All three kinds of file are Parquet with one schema, written with fixed settings so that equal rows give
equal bytes. `provenance` and `facts` are JSON text columns; the file-level entry `cellar` of the schema
metadata is JSON too and holds what belongs to the file as a whole, such as the sizes of packs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from store.element import (
    KINDS,
    MAX_PAYLOAD_BYTES,
    MAX_RECORD_BYTES,
    Ref,
    check_full_name,
    encode_record,
    record_of,
)
from store.entry import MAX_SEQUENCE
from store.errors import IntegrityError
from store.format import BUILD_PREFIX, INDEX_PREFIX, RESTORE, canonical_json, encode_json, sha256
from store.parquet import UNREADABLE, check_columns, encode_table, iter_batches, read_parquet

UNCOMMITTED = 0
"""Commit number of a row that no log entry has made visible yet."""

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("version", pa.string()),
        ("digest", pa.string()),
        ("pack", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("media", pa.string()),
        ("requires", pa.list_(pa.string())),
        ("recipe", pa.string()),
        ("provenance", pa.string()),
        ("facts", pa.string()),
        ("dtype", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("commit", pa.int64()),
    ]
)
METADATA_KEY = b"cellar"
"""Entry of a file's metadata that holds, as JSON, what belongs to the file as a whole."""
_SOURCE_KEY = b"source"
"""Metadata entry under which a decoded table remembers its object, so that a later error can name it."""

_PLAIN = tuple(set(SCHEMA.names) - {"requires", "provenance", "facts", "shape"})
_DIGEST = r"[0-9a-f]{64}"
_PACK = r"[0-9A-Za-z]+"
"""It becomes part of a key, so of a path."""
_SIMPLE_NAME = r"[a-z]+(?:/[0-9A-Za-z_-][0-9A-Za-z._-]{0,99}){1,4}"
"""Names that need no closer look; the kind is looked at anyhow."""
_MANY = 200
_decode = json.JSONDecoder().raw_decode
_MIN_OFFSET = 8
"""A pack starts with eight bytes of magic."""
_ROWS_AT_ONCE = 1024
_TEXT_AT_ONCE = 4 * 1024**2
"""JSON text that `iter_rows` holds decoded at one time, unless that of one row is more."""


@dataclass(frozen=True, slots=True)
class Row:
    """One version in the store.

    `name` is the full name; `offset` and `length` are the bytes of the payload inside pack `pack`; `digest`
    is the payload's SHA-256; `dtype` and `shape` describe its largest tensor; `commit` is the number of the
    log entry that made it visible.
    """

    name: str
    kind: str
    version: str
    digest: str
    pack: str
    offset: int
    length: int
    media: str
    requires: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict, hash=False)
    facts: dict[str, Any] = field(default_factory=dict, hash=False)
    dtype: str = ""
    shape: tuple[int, ...] = ()
    commit: int = UNCOMMITTED
    _proven: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether the table that the row came from was found to fit its version; a changed copy begins anew."""

    @property
    def ref(self) -> Ref:
        """Reference to exactly this version."""
        return Ref(name=self.name, version=self.version)

    @property
    def recipe(self) -> str:
        """Fingerprint of the step that made it, empty if it has none."""
        return str(self.provenance.get("recipe", ""))

    def visible_since(self, commit: int) -> Row:
        """The same row with the number of the commit that made it visible."""
        return replace(self, commit=commit)

    def is_authentic(self) -> bool:
        """Tell whether the version is the digest of the record that the row describes."""
        if self._proven:
            return True
        record = record_of(self.name, self.media, self.digest, self.length, self.requires, self.provenance)
        return sha256(canonical_json(record)) == self.version


_FIELDS = tuple(each.name for each in fields(Row) if each.init)
_PLACES = tuple(getattr(Row, name).__set__ for name in _FIELDS)
"""Fill a new row, in the order of its fields; a frozen class does so itself in three times the time."""
_PROVEN = Row.__dict__["_proven"].__set__


def encode_rows(rows: Iterable[Row], metadata: Mapping[str, Any], *, group_size: int = 4096) -> bytes:
    """Write rows, in the order given, as a Parquet file with `metadata` (JSON values) beside them."""
    return encode_described(tabulate(rows), metadata, group_size=group_size)


def encode_described(table: pa.Table, metadata: Mapping[str, Any], *, group_size: int = 4096) -> bytes:
    """Write a table of rows with `metadata` beside them; equal rows give equal bytes however they came."""
    schema = SCHEMA.with_metadata({METADATA_KEY: canonical_json(metadata)})
    # By its own schema a table that was read from a file would tell so in the bytes.
    described = pa.Table.from_arrays(table.combine_chunks().columns, schema=schema)
    return encode_table(described, group_size=group_size)


def tabulate(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table, which takes a fifth of their memory."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for row in rows:
        for name in _PLAIN:
            columns[name].append(getattr(row, name))
        columns["requires"].append(list(row.requires))
        columns["provenance"].append(canonical_json(row.provenance).decode())
        columns["facts"].append(canonical_json(row.facts).decode())
        columns["shape"].append(list(row.shape))
    return pa.table(columns, schema=SCHEMA)


def decode_batches(data: bytes, key: str) -> tuple[dict[str, Any], Iterator[pa.Table]]:
    """Read a file of rows in small tables; like `decode_table` for files that are not to be held whole.

    Returns its metadata and the tables, which raise `IntegrityError` when one of them is not as it should be.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        metadata = json.loads((file.metadata.metadata or {})[METADATA_KEY])
    except UNREADABLE as error:
        raise IntegrityError(f"{key} is not a table of this store; {RESTORE}") from error
    if not _is_metadata(metadata, key):
        raise IntegrityError(f"{key} lacks the notes that belong to its rows; {RESTORE}")
    return metadata, _batches(file, key)


def _batches(file: pq.ParquetFile, key: str) -> Iterator[pa.Table]:
    batches = iter_batches(file, range(file.metadata.num_row_groups))
    while True:
        try:
            batch = next(batches, None)
        except UNREADABLE as error:
            raise IntegrityError(f"{key} is not a table of this store; {RESTORE}") from error
        if batch is None:
            return
        yield check_table(pa.Table.from_batches([batch]), key)


def decode_table(data: bytes, key: str, *, most: int | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Read a file of rows and its metadata; raises `IntegrityError` naming `key` if it is not one.

    It is not if it takes more than `most` bytes decoded, for callers that know how large it can be.
    """
    try:
        table = read_parquet(pa.BufferReader(data), most=most)
        metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
    except UNREADABLE as error:
        raise IntegrityError(f"{key} is not a table of this store; {RESTORE}") from error
    if not _is_metadata(metadata, key):
        raise IntegrityError(f"{key} lacks the notes that belong to its rows; {RESTORE}")
    return check_table(table, key), metadata


def check_table(table: pa.Table, key: str) -> pa.Table:
    """Return a table that was read from `key` if its columns, and the places it names, are possible ones."""
    try:
        check_columns(table, SCHEMA)
    except ValueError as error:
        raise IntegrityError(f"{key} has other columns than a table of this store; {RESTORE}") from error
    for name, least, most in (
        ("offset", _MIN_OFFSET, 2**62),
        ("length", 0, MAX_PAYLOAD_BYTES),
        ("commit", 0, MAX_SEQUENCE),
    ):
        found = pc.min_max(table[name]).as_py()
        if len(table) and not (least <= found["min"] and found["max"] <= most):
            raise IntegrityError(f"{key} has an impossible {name}; {RESTORE}")
    if len(table) and pc.max(text_bytes(table)).as_py() > MAX_RECORD_BYTES:
        raise IntegrityError(f"{key} has a row that is larger than any can be; {RESTORE}")
    return table.replace_schema_metadata({_SOURCE_KEY: key.encode()})


def text_bytes(table: pa.Table) -> pa.ChunkedArray:
    """Return how many bytes of JSON text each row has; compressed they are nearly free, decoded very dear."""
    columns = (pc.binary_length(table[name]).cast(pa.int64()) for name in ("provenance", "facts"))
    return pc.add(*columns)


def _is_metadata(metadata: object, key: str) -> bool:
    """Tell whether a file's metadata has what its kind needs: pack sizes, in a part also unit and notes."""
    if not isinstance(metadata, dict):
        return False
    if not key.startswith((INDEX_PREFIX, BUILD_PREFIX)):
        return True
    packs = metadata.get("packs")
    if not isinstance(packs, dict) or not all(type(size) is int and size >= 0 for size in packs.values()):
        return False
    is_part = isinstance(metadata.get("unit"), str) and isinstance(metadata.get("notes"), dict)
    return is_part or key.startswith(INDEX_PREFIX)


def rows_of(
    table: pa.Table, positions: Sequence[int] | None = None, *, commit: int = UNCOMMITTED
) -> list[Row]:
    """Turn a table, or the rows at `positions`, into `Row`s; `commit` stands in where the file has none.

    Raises `IntegrityError` naming the object that the table came from if a row holds what none can.
    """
    chosen = table if positions is None else table.take(pa.array(positions, pa.int64()))
    try:
        return _rows_of(chosen, commit)
    except UNREADABLE as error:
        key = (table.schema.metadata or {}).get(_SOURCE_KEY, b"a table").decode()
        raise IntegrityError(f"{key} holds a row that describes no element; {RESTORE}") from error


def iter_rows(table: pa.Table) -> Iterator[Row]:
    """Yield the rows of a table as `rows_of` returns them, without holding all of them at one time."""
    start = size = 0
    for end, more in enumerate(text_bytes(table).to_pylist()):
        if end - start == _ROWS_AT_ONCE or (end > start and size + more > _TEXT_AT_ONCE):
            yield from rows_of(table.slice(start, end - start))
            start, size = end, 0
        size += more
    if start < len(table):
        yield from rows_of(table.slice(start))


def _rows_of(table: pa.Table, commit: int) -> list[Row]:
    _check_texts(table)
    columns = {name: table[name].to_pylist() for name in SCHEMA.names}
    texts = columns["provenance"]
    columns["provenance"] = _json_objects(texts)
    columns["facts"] = _json_objects(columns["facts"])
    columns["requires"] = [tuple(versions) for versions in columns["requires"]]
    columns["shape"] = [tuple(sizes) for sizes in columns["shape"]]
    columns["commit"] = [number or commit for number in columns["commit"]]
    recipes = columns.pop("recipe")
    rows = []
    for recipe, text, *values in zip(recipes, texts, *(columns[name] for name in _FIELDS), strict=True):
        row = Row.__new__(Row)
        for place, value in zip(_PLACES, values, strict=True):
            place(row, value)
        if row.recipe != recipe or not row.name.startswith(f"{row.kind}/"):
            raise ValueError("recipe or kind")
        # The texts are canonical: joining them gives what encoding the record would, in a fifth of the time.
        record = encode_record(row.name, row.media, row.digest, row.length, row.requires, text)
        _PROVEN(row, sha256(record) == row.version)
        rows.append(row)
    return rows


def _check_texts(table: pa.Table) -> None:
    """Raise `ValueError` for digests, packs, names and kinds that no store writes."""
    digests = (table["version"], table["digest"], pc.list_flatten(table["requires"]))
    if not all(_all_match(column, _DIGEST) for column in digests):
        raise ValueError("digest")
    if not _all_match(table["pack"], _PACK):
        raise ValueError("pack")
    if not _all_match(table["name"], _SIMPLE_NAME):
        for name in table["name"].to_pylist():
            check_full_name(name)
    if not KINDS.issuperset(table["kind"].to_pylist()):
        raise ValueError("kind")


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    """Tell whether all texts match; Arrow is fast with many, Python with few."""
    if len(column) < _MANY:
        return all(re.fullmatch(pattern, text) for text in column.to_pylist())
    return pc.all(pc.match_substring_regex(column, rf"\A(?:{pattern})\z")).as_py() is True


def _json_objects(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Decode a JSON column; `ValueError` unless the texts are canonical, which also bars NaN and infinities.

    Encoding all values at once takes half the time. That it gives the same text shows that each value does:
    each text is one whole object, and where an object that begins at one place ends is certain.
    """
    values = []
    for text in texts:
        value, end = _decode(text)
        if not isinstance(value, dict) or end != len(text):
            raise ValueError("not a JSON object")
        values.append(value)
    if encode_json(values) != f"[{','.join(texts)}]":
        raise ValueError("not canonical JSON")
    return values
