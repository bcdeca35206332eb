"""Key tables find every key; directories lead to rows, or to an error of the store, whatever they hold."""

from __future__ import annotations

import json
import random
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic import synthetic_rows
from store.backend.local import LocalBackend
from store.directory import check_directory, decode_header, encode_directory, read_directory, read_packs
from store.errors import IntegrityError
from store.format import directory_key, index_key, seal, sha256, unseal
from store.group_cache import GroupCache
from store.index import IndexBuilder, IndexFile, encode_index, write_index
from store.keytable import KeyTable, decode_positions, encode_key_table, encode_positions, version_keys
from store.manifest import Segment
from store.rows import decode_table, rows_of
from store.source import Held, Stored, open_source
from store.visibility import merged, sorted_rows
from store.wanted import Wanted
from tests.store.memory import MemoryBackend

PACK = "e" * 64
ROWS = 2500


@given(st.lists(st.integers(0, 2**64 - 1), max_size=200), st.integers(0, 2**64 - 1))
def test_a_key_table_leads_to_every_key(keys: list[int], other: int) -> None:
    table, positions = encode_key_table(array("Q", keys))
    opened = KeyTable(table, len(keys))
    where = decode_positions(encode_positions(positions), len(keys))

    for position, key in enumerate(keys):
        assert position in [where[rank] for rank in opened.find(key)]
    assert all(0 <= rank < len(keys) for rank in opened.find(other))


def test_a_key_table_hardly_ever_finds_an_absent_key_and_is_small() -> None:
    count = 50_000
    table, _ = encode_key_table(version_keys([sha256(b"%d" % n) for n in range(count)]))
    opened = KeyTable(table, count)

    absent = version_keys([sha256(b"other %d" % n) for n in range(count)])

    assert sum(len(opened.find(key)) > 0 for key in absent) < count / 1000
    assert len(table) * 8 / count < 19


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"\xff" * len(data), lambda data: b""],
)
def test_what_is_no_key_table_is_refused(damage: Any) -> None:
    table, _ = encode_key_table(array("Q", [2**63, 5, 2**40] * 20))

    with pytest.raises(ValueError, match="not the"):
        KeyTable(damage(table), 60)


def index_of(count: int = ROWS, start: int = 0) -> IndexFile:
    return encode_index(sorted_rows(synthetic_rows(start, count, PACK)), {PACK: 7})


@pytest.fixture(scope="module")
def index() -> IndexFile:
    return index_of()


@pytest.fixture
def backend(index: IndexFile) -> MemoryBackend:
    backend = MemoryBackend()
    write_index(backend, index)
    return backend


def opened(backend: MemoryBackend, index: IndexFile, *, commit: int = 1) -> Any:
    return open_source(backend, Segment(index.digest, index.rows, commit), GroupCache())


def test_equal_rows_make_equal_files_however_they_come(index: IndexFile) -> None:
    rows = sorted_rows(synthetic_rows(0, ROWS, PACK))
    builder = IndexBuilder()
    for start in range(0, ROWS, 700):
        builder.add(rows.slice(start, 700))

    assert builder.finish({PACK: 7}) == index


def test_a_directory_leads_to_every_row_and_to_no_other(backend: MemoryBackend, index: IndexFile) -> None:
    stored, held = opened(backend, index), Held(Segment(index.digest, index.rows, 1), index.data)
    rows = decode_table(index.data, index_key(index.digest))[0]
    generator = random.Random(1)
    for column in ("version", "recipe", "name"):
        values = rows[column].to_pylist()
        for count in (1, 3, 2000):
            wanted = Wanted(column, [*generator.sample(values, count), "f" * 64, ""])
            found = pa.concat_tables(stored.by(wanted)).replace_schema_metadata(None)
            expected = pa.concat_tables(held.by(wanted)).replace_schema_metadata(None)
            assert sorted_rows(found).to_pylist() == sorted_rows(expected).to_pylist()
            assert len(found) == count
    assert stored.by(Wanted("version", ["f" * 64])) == []
    assert stored.packs() == held.packs() == {PACK: (7, 1)}
    assert sum(map(len, stored.chunks(["name", "version", "commit"]))) == ROWS
    [some] = stored.chunks(["name"], "memory/synthetic/000002/", "memory/synthetic/0000020")
    assert some["name"][0].as_py() <= "memory/synthetic/000002/000"
    assert len(some) < 1500


def test_rows_by_need_take_few_bytes(backend: MemoryBackend, index: IndexFile) -> None:
    version = decode_table(index.data, index_key(index.digest))[0]["version"][1500].as_py()
    read: list[int] = []
    reading = backend.read

    def counted(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        data = reading(key, offset=offset, length=length)
        read.append(len(data))
        return data

    backend.read = counted  # type: ignore[method-assign]
    stored = opened(backend, index)

    [table] = stored.by(Wanted("version", [version]))

    assert [row.version for row in rows_of(table)] == [version]
    assert len(read) == 5  # header, key table, positions, footer, one row group
    assert sum(read[1:]) < len(index.data) / 2


def header_of(directory: bytes) -> tuple[int, dict[str, Any]]:
    length = int.from_bytes(directory[8:16], "little")
    return 16 + length, unseal(directory[16 : 16 + length], "header")


def with_header(directory: bytes, **changes: Any) -> bytes:
    end, record = header_of(directory)
    header = seal(record | changes)
    return directory[:8] + len(header).to_bytes(8, "little") + header + directory[end:]


def lying(index: IndexFile, section: str, content: bytes) -> bytes:
    """Return the directory with another content of a section, well sealed."""
    end, record = header_of(index.directory)
    sections = {**record["sections"], section: [len(index.directory) - end, len(content), sha256(content)]}
    return with_header(index.directory, sections=sections) + content


def section_of(index: IndexFile, name: str) -> bytes:
    end, record = header_of(index.directory)
    offset, length, _ = record["sections"][name]
    return index.directory[end + offset : end + offset + length]


def groups_of(index: IndexFile) -> list[Any]:
    groups: list[Any] = header_of(index.directory)[1]["groups"]
    return groups


OTHER = index_of(start=10_000)
LIES: dict[str, Any] = {
    "of another index": lambda index: OTHER.directory,
    "empty": lambda index: b"",
    "cut": lambda index: index.directory[:1000],
    "no magic": lambda index: b"x" + index.directory[1:],
    "endless header": lambda index: index.directory[:8] + b"\xff" * 8 + index.directory[16:],
    "more rows": lambda index: with_header(index.directory, rows=ROWS + 1),
    "very many rows": lambda index: with_header(index.directory, rows=2**60),
    "fewer groups": lambda index: with_header(
        index.directory, groups=header_of(index.directory)[1]["groups"][:2]
    ),
    "no groups": lambda index: with_header(index.directory, groups=[[], 1, "x"]),
    "no sections": lambda index: with_header(index.directory, sections={}),
    "negative region": lambda index: with_header(index.directory, footer=[-1, 5, "a" * 64]),
    "swapped groups": lambda index: with_header(index.directory, groups=groups_of(index)[::-1]),
    "keys of another index": lambda index: lying(index, "version_keys", section_of(OTHER, "version_keys")),
    "short keys": lambda index: lying(index, "version_keys", b"short"),
    "rows of another index": lambda index: lying(index, "version_rows", section_of(OTHER, "version_rows")),
    "rows beyond the end": lambda index: lying(index, "version_rows", b"\xff" * 4 * ROWS),
    "no footer": lambda index: lying(index, "footer", b"nothing"),
    "packs of no store": lambda index: lying(index, "packs", b'{"../x":[1,2]}'),
    "packs without end": lambda index: lying(index, "packs", b"[" * 100_000),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_directory_that_lies_never_leads_to_a_wrong_row(
    backend: MemoryBackend, index: IndexFile, lie: str
) -> None:
    """Rows may be missed if the key table itself lies, as `verify` would tell; what is found is right."""
    rows = decode_table(index.data, index_key(index.digest))[0].slice(0, 40)
    backend.put(directory_key(index.digest), LIES[lie](index))

    for column in ("version", "recipe", "name"):
        wanted = Wanted(column, rows[column].to_pylist())
        source = opened(backend, index)
        found = pa.concat_tables([rows.slice(0, 0).replace_schema_metadata(None), *source.by(wanted)])
        assert set(found[column].to_pylist()) <= set(wanted.values)
        if lie not in ("keys of another index", "rows of another index", "swapped groups"):
            assert len(found) == 40
        assert all(row.is_authentic() for row in rows_of(found))
    assert opened(backend, index).packs() == {PACK: (7, 1)}
    with pytest.raises(IntegrityError, match=directory_key(index.digest)):
        check_honest(backend, index)


def check_honest(backend: MemoryBackend, index: IndexFile) -> None:
    """Raise `IntegrityError` unless the directory is what the index file makes it."""
    data = backend.read(directory_key(index.digest))
    read_packs(backend, check_directory(data, index.digest))
    if data != index.directory:
        raise IntegrityError(f"{directory_key(index.digest)} lies; delete that object")


def test_a_directory_follows_from_its_index_file_alone(index: IndexFile) -> None:
    table, metadata = decode_table(index.data, index_key(index.digest))

    again = encode_directory(index.data, table, {pack: (size, 0) for pack, size in metadata["packs"].items()})

    assert again == index.directory
    assert check_directory(index.directory, index.digest).rows == ROWS


def test_every_flipped_bit_of_a_directory_is_found(index: IndexFile) -> None:
    generator = random.Random(3)
    for _ in range(60):
        damaged = bytearray(index.directory)
        damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        with pytest.raises(IntegrityError, match=directory_key(index.digest)):
            check_directory(bytes(damaged), index.digest)


def test_a_row_group_that_is_not_as_recorded_is_noticed(backend: MemoryBackend, index: IndexFile) -> None:
    damaged = bytearray(index.data)
    damaged[len(damaged) // 2] ^= 1
    backend.put(index_key(index.digest), bytes(damaged))
    versions = decode_table(index.data, index_key(index.digest))[0]["version"].to_pylist()

    with pytest.raises(IntegrityError, match=f"{index_key(index.digest)} is damaged"):
        opened(backend, index).by(Wanted("version", versions))


def test_a_source_says_when_it_had_to_be_read_whole(backend: MemoryBackend, index: IndexFile) -> None:
    assert not opened(backend, index).lacks_directory
    backend.delete(directory_key(index.digest))
    assert opened(backend, index).lacks_directory
    directory = read_directory(_with(index), index.digest)
    stored = Stored(backend, Segment(index.digest, index.rows, 1, directory.lead), GroupCache())
    assert len(stored.by(Wanted("name", ["memory/synthetic/000001/001"]))[0]) == 1
    assert stored.lacks_directory


def _with(index: IndexFile) -> MemoryBackend:
    backend = MemoryBackend()
    write_index(backend, index)
    return backend


def test_a_directory_with_endless_groups_costs_time_only(tmp_path: Path, index: IndexFile) -> None:
    backend = LocalBackend(tmp_path)
    write_index(backend, index)
    groups = [[name, offset, 2**50, digest] for name, offset, _, digest in groups_of(index)]
    backend.put(directory_key(index.digest), with_header(index.directory, groups=groups))
    version = decode_table(index.data, index_key(index.digest))[0]["version"][0].as_py()

    [found] = open_source(backend, Segment(index.digest, index.rows, 1), GroupCache()).by(
        Wanted("version", [version])
    )

    assert found["version"].to_pylist() == [version]


def test_a_header_is_decoded_for_its_own_index_only(index: IndexFile) -> None:
    end, record = header_of(index.directory)

    assert decode_header(index.directory[16:end], index.digest).groups
    assert json.loads(index.directory[16:end])["index"] == index.digest == record["index"]
    with pytest.raises(IntegrityError, match=OTHER.digest):
        decode_header(index.directory[16:end], OTHER.digest)


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=5), st.integers(1, 4))
def test_streams_are_merged_in_order_with_the_rows_of_a_name_together(
    streams: list[list[int]], size: int
) -> None:
    def tables(numbers: list[int]) -> Any:
        rows = [(f"n{number}", f"v{number}", at) for at, number in enumerate(sorted(numbers))]
        columns = {name: [row[n] for row in rows] for n, name in enumerate(("name", "version", "commit"))}
        types = pa.schema([("name", pa.string()), ("version", pa.string()), ("commit", pa.int64())])
        table = pa.table(columns, schema=types)
        for start in range(0, len(rows), size):
            yield table.slice(start, size)

    found = list(merged([tables(numbers) for numbers in streams]))

    names = [set(table["name"].to_pylist()) for table in found]
    assert sum(map(len, found)) == sum(map(len, streams))
    assert all(table["name"].to_pylist() == sorted(table["name"].to_pylist()) for table in found)
    assert all(max(one) < min(two) for one, two in pairwise(names))
