"""Each reader streams, keeps a stable order, and reports what it cannot read instead of failing."""

import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.document import Document, Item, Skipped
from tasks.corpus.params import CorpusParams
from tasks.corpus.sources import open_source
from tasks.errors import BadCorpus


def read(**params: object) -> list[Item]:
    return list(open_source(CorpusParams.model_validate(params)).items())


def names(items: list[Item]) -> list[str]:
    return [item.name for item in items if isinstance(item, Document)]


def reasons(items: list[Item]) -> dict[str, str]:
    return {item.name: item.reason for item in items if isinstance(item, Skipped)}


def test_a_folder_gives_one_document_per_file_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("second")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "note.md").write_text("not asked for")

    assert names(read(reader="folder", path=tmp_path)) == ["a", "b/two"]
    assert names(read(reader="folder", path=tmp_path, pattern="*.md")) == ["note"]


def test_unreadable_files_of_a_folder_are_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "huge.txt").write_text("x" * 101)
    (tmp_path / "huger.txt").write_text("x" * 1000)
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "good.txt").write_text("good")

    items = read(reader="folder", path=tmp_path, max_characters=100)

    assert names(items) == ["good"]
    assert reasons(items) == {
        "latin.txt": "not UTF-8",
        "empty": "empty",
        "huge": "longer than 100 characters",
        "huger.txt": "longer than 100 characters",
        "binary": "contains NUL characters",
    }


def test_json_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three"
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"id": "x", "text": text}, ensure_ascii=False) + "\n", "utf-8"
    )

    assert read(reader="jsonl", path=tmp_path / "a.jsonl") == [Document("x", text, "a.jsonl:1")]


@pytest.mark.parametrize("start", ["\ufeff", "\ufeff\n"])
def test_a_mark_of_the_byte_order_before_json_lines_is_no_part_of_them(tmp_path: Path, start: str) -> None:
    line = json.dumps({"id": "x", "text": "a first one"}) + "\n"
    (tmp_path / "a.jsonl").write_text(f"{start}{line}\ufeff{line}", "utf-8")

    first, second = read(reader="jsonl", path=tmp_path / "a.jsonl")

    assert isinstance(first, Document)
    assert first.text == "a first one"
    assert second == Skipped(f"a.jsonl-{2 + start.count(chr(10))}", "malformed JSON")


def test_bad_json_lines_are_reported_by_file_and_line(tmp_path: Path) -> None:
    lines = [
        b'{"id": "ok", "text": "fine"}',
        b'{"id": "torn", "text": ',
        b'{"id": "bytes", "text": "\xff"}',
        b"[1, 2]",
        b'{"id": "no text"}',
        b'{"id": "surrogate", "text": "\\ud800"}',
        b"",
        b'{"text": "no id"}',
        b'{"id": 7, "text": "a number"}',
        b'{"id": "long", "text": "' + b"y" * 200_000 + b'"}',
        b'{"id": "last", "text": "no line end"}',
    ]
    (tmp_path / "d.jsonl").write_bytes(b"\n".join(lines))

    items = read(reader="jsonl", path=tmp_path, max_characters=1000)

    assert names(items) == ["ok", "d/000008", "7", "last"]
    assert reasons(items) == {
        "d.jsonl-2": "malformed JSON",
        "d.jsonl-3": "not UTF-8",
        "d.jsonl-4": "not a JSON object",
        "d.jsonl-5": "field 'text' is missing or no text",
        "surrogate": "not valid Unicode (a lone surrogate)",
        "d.jsonl-10": "longer than 1000 characters",
    }


def test_json_fields_are_configurable(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"key": "k", "body": "b"}\n')

    items = read(reader="jsonl", path=tmp_path, id_field="key", text_field="body")

    assert items == [Document("k", "b", "d.jsonl:1")]


def write_parquet(path: Path, columns: dict[str, list[object]], row_group_size: int = 2) -> None:
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)


def test_parquet_rows_come_in_order_across_row_groups_and_files(tmp_path: Path) -> None:
    write_parquet(
        tmp_path / "1.parquet", {"id": ["a", "b", "c"], "text": ["A", "B", "C"], "score": [1, 2, 3]}
    )
    write_parquet(tmp_path / "2.parquet", {"id": ["d", None], "text": ["D", "E"]})

    items = read(reader="parquet", path=tmp_path)

    assert names(items) == ["a", "b", "c", "d", "2/000002"]
    assert items[2] == Document("c", "C", "1.parquet:3")


def test_a_null_text_and_a_file_that_is_no_parquet_are_reported(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", {"id": ["a", "b"], "text": [None, "B"]})
    (tmp_path / "2.parquet").write_text("nonsense")

    items = read(reader="parquet", path=tmp_path)

    assert names(items) == ["b"]
    assert reasons(items) == {
        "1.parquet-1": "field 'text' is missing or no text",
        "2.parquet": "not a readable Parquet file",
    }


def test_a_damaged_row_group_costs_only_its_own_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(path, {"id": ["a", "b", "c"], "text": ["A" * 300, "B" * 300, "C" * 300]}, row_group_size=1)
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)

    items = read(reader="parquet", path=path)

    assert names(items) == ["a", "c"]
    assert reasons(items) == {"d.parquet-group-1": "damaged row group"}


def test_a_missing_text_column_is_an_error_that_names_the_columns(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", {"id": ["a"], "content": ["A"]})

    with pytest.raises(BadCorpus, match=r"no 'text' column but id, content; set corpus\.text_field"):
        read(reader="parquet", path=tmp_path)


BOOK = "A title page\n\nChapter 1\nIt began.\n\nChapter 2\nSee Chapter 1.\n"


@pytest.mark.parametrize(
    ("split_on", "kind", "texts"),
    [
        (r"^Chapter \d+$", "regex", ["A title page", "Chapter 1\nIt began.", "Chapter 2\nSee Chapter 1."]),
        ("Chapter ", "literal", ["A title page", "Chapter 1\nIt began.", "Chapter 2\nSee Chapter 1."]),
        (r"^$", "regex", ["A title page", "Chapter 1\nIt began.", "Chapter 2\nSee Chapter 1."]),
        (None, "regex", [BOOK.strip()]),
    ],
)
def test_one_long_text_splits_where_a_line_matches(
    tmp_path: Path, split_on: str | None, kind: str, texts: list[str]
) -> None:
    (tmp_path / "book.txt").write_text(BOOK)

    items = read(reader="text", path=tmp_path / "book.txt", split_on=split_on, split_kind=kind)

    assert [item.text for item in items if isinstance(item, Document)] == texts
    assert names(items) == (["book"] if split_on is None else ["book/0001", "book/0002", "book/0003"])


def test_parts_of_a_text_that_are_too_long_or_not_utf8_are_reported(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"#1\n" + b"x\n" * 500 + b"#2\nfine\n#3\n\xff\n#4\n" + b"z" * 50)

    items = read(reader="text", path=tmp_path / "b.txt", split_on="^#", max_characters=40)

    assert names(items) == ["b/0002"]
    assert reasons(items) == {
        "b/0001": "longer than 40 characters",
        "b/0003": "not UTF-8",
        "b/0004": "longer than 40 characters",
    }


def test_a_split_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(BOOK)

    with pytest.raises(BadCorpus, match=r"split_on 'Kapitel' matches no line of b\.txt"):
        read(reader="text", path=tmp_path / "b.txt", split_on="Kapitel")


UNREADABLE = Path("/proc/self/mem")


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file whose reading fails, as Linux has one")
@pytest.mark.parametrize(
    ("reader", "suffix"), [("folder", "txt"), ("jsonl", "jsonl"), ("parquet", "parquet")]
)
def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path: Path, reader: str, suffix: str) -> None:
    (tmp_path / f"bad.{suffix}").symlink_to(UNREADABLE)
    good = tmp_path / f"good.{suffix}"
    if reader == "parquet":
        write_parquet(good, {"id": ["a"], "text": ["A"]})
    else:
        good.write_text('{"id": "a", "text": "A"}')

    items = read(reader=reader, path=tmp_path)

    assert len(names(items)) == 1
    assert list(reasons(items)) == [f"bad.{suffix}"]
    assert open_source(CorpusParams.model_validate({"reader": reader, "path": tmp_path})).identity()


@pytest.mark.parametrize("reader", ["folder", "jsonl", "parquet", "text"])
def test_a_missing_path_is_an_error(tmp_path: Path, reader: str) -> None:
    with pytest.raises(BadCorpus, match="does not exist"):
        read(reader=reader, path=tmp_path / "absent")


@pytest.mark.parametrize("reader", ["folder", "jsonl", "parquet"])
def test_an_empty_folder_is_an_error(tmp_path: Path, reader: str) -> None:
    with pytest.raises(BadCorpus, match="matches"):
        read(reader=reader, path=tmp_path)


def test_reading_a_large_file_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("w") as stream:
        for i in range(2000):
            stream.write(json.dumps({"id": f"d{i}", "text": "word " * 2000}) + "\n")
    source = open_source(CorpusParams(reader="jsonl", path=path))

    tracemalloc.start()
    count = sum(1 for _ in source.items())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 2000
    assert peak < 1_000_000 < path.stat().st_size / 10


def test_identity_follows_content_and_not_place(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.txt").write_text("text")
    here = CorpusParams(reader="folder", path=tmp_path / "here")
    there = CorpusParams(reader="folder", path=tmp_path / "there")
    assert open_source(here).identity() == open_source(there).identity()
    assert here.identity() == there.identity()

    (tmp_path / "there" / "a.txt").write_text("Text")

    assert open_source(here).identity() != open_source(there).identity()
