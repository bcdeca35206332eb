"""Footers of Parquet files: honest ones are read as pyarrow reads them, forged ones cost one error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from store.footer import read_chunks
from tests.store.forged_footers import MUTATIONS, index_file

ROOT = Path(__file__).parents[2]
CHUNK = b"\x3c\x76\x04\x26\x08\x00\x00"
"""A column chunk of 2 bytes at offset 4."""


def file_of(footer: bytes) -> bytes:
    return b"PAR1??" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def footer_of(columns: bytes) -> bytes:
    """Return the footer of one row group; `columns` are the list of its column chunks."""
    return b"\x49\x1c\x19" + columns + b"\x00\x00"


@pytest.mark.parametrize("rows", [0, 1, 2500])
def test_chunks_lie_where_pyarrow_sees_them(rows: int) -> None:
    data = index_file(rows)
    footer = pq.read_metadata(pa.BufferReader(data))
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [[group.column(position) for position in range(footer.num_columns)] for group in groups]

    assert len(groups) == -(-rows // 1024)
    assert read_chunks(data) == [
        [
            (
                column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset,
                column.total_compressed_size,
            )
            for column in group
        ]
        for group in columns
    ]


def test_what_is_not_wanted_is_skipped() -> None:
    others = b"\x11\x12\x13\x07\x14\x80\x01\x17" + bytes(8) + b"\x18\x02\x00\x00"
    lists = b"\x19\x21\x01\x02" + b"\x19\x27" + bytes(16) + b"\x19\x18\x01\x00" + b"\x19\x1c\x15\x02\x00"
    late = (
        b"\x03\xc8\x01\x07" + b"\x19\xf5\x0f" + bytes(15)
    )  # a field by its full number, a list by its full length

    for other in (others, lists, late):
        struct = b"\x0c\x64" + other + b"\x00"
        footer = footer_of(b"\x1c" + CHUNK)[:-1] + struct + b"\x00"
        assert read_chunks(file_of(footer)) == [[(4, 2)]]


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x00",  # no row groups
        b"\x46\x02\x00",  # a number instead
        b"\x49\x15\x02\x00",  # numbers instead
        b"\x4c\x00\x00",  # one struct instead
        footer_of(b"\x1c\x00"),  # a column without metadata
        footer_of(b"\x1c\x3c\x76\x04\x00\x00"),  # without an offset
        footer_of(b"\x1c\x39\x0c\x00"),  # a list instead of it
        footer_of(b"\x1c\x3c\x76\x03\x26\x08\x00\x00"),  # of negative size
        footer_of(b"\x1c\x3c\x76" + b"\xff" * 10 + b"\x01\x26\x08\x00\x00"),  # an endless number
        footer_of(b"\x2c" + CHUNK),  # fewer than it says
        footer_of(b"\xfc\xff\xff\xff\xff\x0f" + CHUNK),
        footer_of(b"\x1c" + CHUNK) + b"\x00",  # more behind it
        footer_of(b"\x1c" + CHUNK)[:-1],
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x09\x08\x0c\x00",  # its row groups again
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x18\xff\xff\xff\xff\x0f\x00",  # a text longer than the file
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x19\xf1\xff\xff\xff\xff\x0f\x00",  # a list longer than the file
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x1b\x00\x00",  # a map
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x1d\x00",  # of no type
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x1c" * 50_000 + bytes(50_001),
        footer_of(b"\x1c" + CHUNK)[:-1] + b"\x19" + b"\x19" * 50_000 + b"\x03\x00",
    ],
)
def test_a_malformed_footer_is_refused(footer: bytes) -> None:
    with pytest.raises(ValueError, match=r"footer|column chunk"):
        read_chunks(file_of(footer))


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", bytes(100), file_of(b"")[:-1], b"\xff" * 8 + b"\xff\xff\xff\x7fPAR1"]
)
def test_a_file_without_a_footer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a Parquet footer"):
        read_chunks(data)


def test_forged_footers_are_read_or_refused_and_never_end_the_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.forged_footers", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr[-2000:]
    read, refused = map(int, done.stdout.split())
    assert read + refused == 4 * (2 + MUTATIONS)
    assert min(read, refused) > MUTATIONS
