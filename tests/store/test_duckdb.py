"""The tables of a store open in DuckDB, with the queries and the output that docs/formats.md shows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from store import Store
from tests.store.samples import codec, memory

FORMATS = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```sql\n(.*?)```\n\n```\n(.*?)```", FORMATS, re.DOTALL)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the store that the documentation looks into."""
    monkeypatch.chdir(tmp_path)
    store = Store.create("store")
    elements = [codec(), *(memory(number, requires=(codec().version,)) for number in range(20))]
    store.pin(store.publish(elements, message="twenty memories"), message="all")
    store.publish([memory(3, size=64)], message="another version")
    return store


@pytest.mark.parametrize(("query", "output"), SHOWN, ids=["snapshot", "index"])
def test_a_documented_query_gives_the_documented_output(store: Store, query: str, output: str) -> None:
    connection = duckdb.connect()
    *preparing, last = connection.extract_statements(query)
    for statement in preparing:
        connection.execute(statement)

    assert str(connection.sql(last.query)).rstrip() == output.rstrip()


def test_what_duckdb_reads_is_what_the_store_says(store: Store) -> None:
    fields = ("name", "kind", "version", "digest", "pack", "offset", "length", "media", "dtype")
    columns = ", ".join(f'"{field}"' for field in fields)

    read = duckdb.connect().execute(f"SELECT {columns}, requires, shape FROM 'store/index/*.parquet'")

    assert sorted(read.fetchall()) == sorted(
        (*(getattr(row, field) for field in fields), list(row.requires), list(row.shape))
        for row in store.catalog().rows()
    )
