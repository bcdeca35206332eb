"""Which packs are reached: a graph of packs, made from the columns of the catalog in bounded memory.

A pack needs the packs that hold what its elements require. So the graph has a node per pack, not per
element, and few edges: the elements of a pack mostly require the same codec or tokenizer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.catalog import Catalog
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, check_digest, index_key
from store.log import CONDEMN, PIN, PUBLISH, Commit, Log
from store.rows import decode_table


class Graph:
    """The packs that visible rows are in, and which packs they need; see `catch_up`."""

    def __init__(self, backend: Backend, log: Log, catalog: Catalog, scanned: Callable[[int], None]) -> None:
        self._backend = backend
        self._log = log
        self._catalog = catalog
        self._scanned = scanned
        self._at = -1
        self._needs: dict[str, set[str]] = {}

    def catch_up(self) -> None:
        """Take in what the log has read since the last call; the catalog must have caught up with it.

        All rows are read the first time and after a removal or repair, otherwise those that were added.
        """
        tip = self._log.tip.sequence
        added = [self._log.at(number) for number in range(self._at + 1, tip + 1)] if self._at >= 0 else []
        if self._at < 0 or any(commit.action not in (PUBLISH, PIN, CONDEMN) for commit in added):
            self._read_all()
        else:
            for commit in added:
                self._add(commit)
        self._at = tip

    def homes(self, versions: Iterable[str]) -> set[str]:
        """Return the packs that hold any of `versions`."""
        return {row.pack for row in self._catalog.get_all(versions).values()}

    def reach(self, packs: Iterable[str]) -> set[str]:
        """Return `packs` and all that they need, step by step."""
        reached = set(packs)
        pending = list(reached)
        while pending:
            new = self._needs.get(pending.pop(), set()) - reached
            reached |= new
            pending += new
        return reached

    def _read_all(self) -> None:
        rows = 0
        pairs: list[pa.Table] = []
        for table in self._catalog.scan(("pack", "requires")):
            pairs.append(_pairs(table))
            rows += len(table)
            self._scanned(rows)
        required = pa.concat_tables(pairs) if pairs else _NO_PAIRS
        wanted = pc.unique(required["version"])
        homes: dict[str, set[str]] = defaultdict(set)
        if len(wanted):
            for table in self._catalog.scan(("version", "pack")):
                found = table.filter(pc.is_in(table["version"], value_set=wanted))
                for version, pack in zip(*(column.to_pylist() for column in found.columns), strict=True):
                    homes[version].add(pack)
                self._scanned(rows)
        self._needs = {}
        for pack, version in zip(*(column.to_pylist() for column in required.columns), strict=True):
            self._needs.setdefault(pack, set()).update(homes.get(version, ()))

    def _add(self, commit: Commit) -> None:
        for digest in commit.indexes:
            key = index_key(digest)
            try:
                data = check_digest(self._backend.read(key), digest, key, holds="index of a commit")
            except KeyMissing as error:
                raise IntegrityError(f"{key}, which the log names, is missing; {RESTORE}") from error
            pairs = _pairs(decode_table(data, key)[0])
            for pack, version in zip(*(column.to_pylist() for column in pairs.columns), strict=True):
                self._needs.setdefault(pack, set()).update(self.homes([version]))


_NO_PAIRS = pa.table({"pack": pa.array([], pa.string()), "version": pa.array([], pa.string())})


def _pairs(table: pa.Table) -> pa.Table:
    """Return every pack in `table` with every version that its rows require, each pair once."""
    requires = table["requires"].combine_chunks()
    packs = table["pack"].combine_chunks().take(pc.list_parent_indices(requires))
    pairs = pa.table({"pack": packs, "version": pc.list_flatten(requires)})
    return pairs.group_by(["pack", "version"], use_threads=False).aggregate([])
