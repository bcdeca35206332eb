"""What a lookup in index files asks for: values of one column, and which columns to tell of their rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import pyarrow as pa

from store.format import is_digest
from store.keytable import text_keys, version_keys
from store.rows import SCHEMA


class Wanted:
    """The values of one column (version, recipe or name) that are looked for in all sources.

    `columns` are what is to be told of the rows that hold one.
    """

    def __init__(self, column: str, values: Iterable[str], columns: Sequence[str] = SCHEMA.names) -> None:
        is_possible = is_digest if column == "version" else bool
        self.column = column
        self.columns = list(columns)
        self._set = {value for value in values if is_possible(value)}
        self.values = sorted(self._set)
        self._keys: array[int] | None = None

    @property
    def keys(self) -> array[int]:
        """Their keys in key tables."""
        if self._keys is None:
            make = version_keys if self.column == "version" else text_keys
            self._keys = make(self.values)
        return self._keys

    def rows_in(self, table: pa.Table, positions: Sequence[int] | None = None) -> pa.Table:
        """Return the rows of `table`, or of those at `positions`, that hold one of the values."""
        chosen = table if positions is None else table.take(pa.array(positions, pa.int64()))
        hits = [value in self._set for value in chosen[self.column].to_pylist()]
        found = chosen.select(self.columns)
        return found if all(hits) else found.filter(pa.array(hits, pa.bool_()))
