"""Readers of people's own text: a folder of files, JSON lines, Parquet tables, one long text.

Each is a generator over documents in a stable order, holds one document (or one Parquet row group) at a time,
and turns whatever cannot be read into a `Skipped` with its reason instead of failing.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from tasks.corpus.document import Document, Item, Skipped
from tasks.corpus.files import SourceFile
from tasks.errors import BadCorpus

JSONL_PATTERNS = ("**/*.jsonl", "**/*.ndjson")
PARQUET_PATTERNS = ("**/*.parquet",)

_BYTES_PER_CHARACTER = 4
_JSON_BYTES_PER_CHARACTER = 12
"""A character outside the basic plane is two six-byte escapes in JSON."""

_OTHER_FIELDS_BYTES = 1 << 16
"""Room for the rest of a JSON record."""


def read_folder(files: Sequence[SourceFile], *, longest: int) -> Iterator[Item]:
    """One document per file, named by its path without the suffix; a file is never read beyond the limit."""
    for file in files:
        name = str(PurePosixPath(file.name).with_suffix(""))
        try:
            with file.path.open("rb") as stream:
                data = stream.read(longest * _BYTES_PER_CHARACTER + 4)
        except OSError as error:
            yield file.unreadable(error)
            continue
        if len(data) > longest * _BYTES_PER_CHARACTER:
            yield Skipped(file.name, f"longer than {longest} characters")
            continue
        try:
            yield Document(name, data.decode("utf-8"), file.name)
        except UnicodeDecodeError:
            yield Skipped(file.name, "not UTF-8")


def read_jsonl(
    files: Sequence[SourceFile], *, id_field: str, text_field: str, longest: int
) -> Iterator[Item]:
    """One document per line. Lines end at LF only: U+2028 and its kin are text, not line ends.

    A record without a usable id is named by its file and line number.
    """
    for file in files:
        yield from _as_far_as_readable(file, _json_lines(file, id_field, text_field, longest))


def _as_far_as_readable(file: SourceFile, items: Iterator[Item]) -> Iterator[Item]:
    """The items of a file; where the storage fails, its reason ends them."""
    try:
        yield from items
    except OSError as error:
        yield file.unreadable(error)


def _json_lines(file: SourceFile, id_field: str, text_field: str, longest: int) -> Iterator[Item]:
    ceiling = longest * _JSON_BYTES_PER_CHARACTER + _OTHER_FIELDS_BYTES
    stem = str(PurePosixPath(file.name).with_suffix(""))
    with file.path.open("rb") as stream:
        number = 0
        while line := stream.readline(ceiling):
            number += 1
            place = f"{file.name}:{number}"
            if len(line) == ceiling and not line.endswith(b"\n"):
                while (rest := stream.readline(ceiling)) and not rest.endswith(b"\n"):
                    pass
                yield Skipped(place, f"longer than {longest} characters")
            elif (record := line.removeprefix(BOM_UTF8) if number == 1 else line).strip():
                yield _record(record, place, f"{stem}/{number:06d}", id_field, text_field)


def _record(line: bytes, place: str, fallback: str, id_field: str, text_field: str) -> Item:
    """One JSON line as a document named by its id, or by `fallback` where it has none."""
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return Skipped(place, "not UTF-8")
    except (ValueError, RecursionError):
        return Skipped(place, "malformed JSON")
    if not isinstance(record, dict):
        return Skipped(place, "not a JSON object")
    return _named(record.get(id_field), record.get(text_field), place, fallback, text_field)


def _named(identifier: Any, text: Any, place: str, fallback: str, text_field: str) -> Item:
    if not isinstance(text, str):
        return Skipped(place, f"field {text_field!r} is missing or no text")
    usable = isinstance(identifier, (str, int)) and not isinstance(identifier, bool) and str(identifier)
    return Document(str(identifier) if usable else fallback, text, place)


def read_parquet(files: Sequence[SourceFile], *, id_field: str, text_field: str) -> Iterator[Item]:
    """One document per row of tables in the FineWeb-Edu layout, one row group in memory at a time.

    Raises BadCorpus when a table lacks the text column: that is a wrong parameter, not a bad document.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        stem = str(PurePosixPath(file.name).with_suffix(""))
        try:
            table = pq.ParquetFile(file.path, pre_buffer=False)
        except (pa.ArrowInvalid, OSError):
            yield Skipped(file.name, "not a readable Parquet file")
            continue
        with table:
            columns = table.schema_arrow.names
            if text_field not in columns:
                there = ", ".join(columns)
                raise BadCorpus(
                    f"{file.name} has no {text_field!r} column but {there}; set corpus.text_field"
                )
            wanted = [c for c in (id_field, text_field) if c in columns]
            row = 0
            for group in range(table.num_row_groups):
                try:
                    rows = table.read_row_group(group, columns=wanted, use_threads=False)
                except (pa.ArrowInvalid, OSError):
                    yield Skipped(f"{file.name}:group {group}", "damaged row group")
                    row += table.metadata.row_group(group).num_rows
                    continue
                yield from _rows(rows, file.name, stem, row, id_field, text_field)
                row += rows.num_rows


def _rows(rows: Any, file: str, stem: str, first: int, id_field: str, text_field: str) -> Iterator[Item]:
    """The rows of one row group (a pyarrow Table), converted one by one."""
    texts = rows.column(text_field)
    identifiers = rows.column(id_field) if id_field in rows.column_names else None
    for i in range(rows.num_rows):
        place, number = f"{file}:{first + i + 1}", first + i + 1
        try:
            text = texts[i].as_py()
            identifier = identifiers[i].as_py() if identifiers is not None else None
        except UnicodeDecodeError:
            yield Skipped(place, "not UTF-8")
            continue
        yield _named(identifier, text, place, f"{stem}/{number:06d}", text_field)


def read_text(
    files: Sequence[SourceFile], *, split_on: str | None, kind: str, longest: int
) -> Iterator[Item]:
    """The parts of one long text, named `<stem>/0001` and so on in their order.

    A line that matches `split_on` opens a part and belongs to it. At most one part is held in memory, and no
    more of it than the limit. Raises BadCorpus when no line matches.
    """
    for file in files:
        if split_on is None:
            yield from read_folder([file], longest=longest)
        else:
            yield from _as_far_as_readable(file, _parts(file, split_on, kind, longest))


def _parts(file: SourceFile, split_on: str, kind: str, longest: int) -> Iterator[Item]:
    opens = _matcher(split_on, kind)
    stem = str(PurePosixPath(file.name).with_suffix(""))
    part, order, matched = _Part(f"{stem}/0001", f"{file.name}:1"), 1, False
    with file.path.open("rb") as stream:
        number = 0
        while line := stream.readline(longest * _BYTES_PER_CHARACTER):
            number += 1
            if opens(line):
                matched = True
                if part.begun:
                    yield part.close(longest)
                    order += 1
                part = _Part(f"{stem}/{order:04d}", f"{file.name}:{number}")
            part.add(line, longest)
    if not matched:
        raise BadCorpus(f"corpus.split_on {split_on!r} matches no line of {file.name}; check the pattern")
    if part.begun:
        yield part.close(longest)


def _matcher(split_on: str, kind: str) -> Callable[[bytes], bool]:
    """Whether a raw line opens a part. Damaged bytes are replaced for matching only; the part keeps them."""
    if kind == "literal":
        return lambda line: line.decode("utf-8", "replace").removeprefix("\ufeff").startswith(split_on)
    pattern = re.compile(split_on)
    return lambda line: (
        pattern.search(line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")) is not None
    )


class _Part:
    """The lines of the part being read; beyond the limit only their count is kept."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source
        self.begun = False
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, line: bytes, longest: int) -> None:
        self.begun = self.begun or bool(line.strip())
        self._bytes += len(line)
        if self._bytes <= longest * _BYTES_PER_CHARACTER and self.begun:
            self._lines.append(line)

    def close(self, longest: int) -> Item:
        if self._bytes > longest * _BYTES_PER_CHARACTER:
            return Skipped(self.name, f"longer than {longest} characters")
        try:
            return Document(self.name, b"".join(self._lines).decode("utf-8"), self.source)
        except UnicodeDecodeError:
            return Skipped(self.name, "not UTF-8")
