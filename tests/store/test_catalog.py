"""The catalog answers from segments, directories and recent files what a plain reading of the log would."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.synthetic import synthetic_rows
from store import Row, Store
from store.checkpoint import write_checkpoint, write_checkpoint_if_due
from store.format import (
    CHECKPOINT_PREFIX,
    index_key,
    sha256,
)
from store.index import encode_index, write_index
from store.log import COLLECT, CONDEMN, PUBLISH, REPAIR, SWEPT, Commit, Draft
from store.removals import Removal, Removals, write_removal
from store.rows import encode_rows, rows_of
from store.store import create_format
from store.visibility import sorted_rows
from tests.store.memory import MemoryBackend


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let row groups, segments and the time between checkpoints be so small that few rows fill many."""
    for module in ("directory", "index", "source"):
        monkeypatch.setattr(f"store.{module}.GROUP_ROWS", 4)
    for module in ("index", "source"):
        monkeypatch.setattr(f"store.{module}.SMALL_ROWS", 4)
    monkeypatch.setattr("store.checkpoint.ROWS", 16)
    monkeypatch.setattr("store.checkpoint.BLOCK", 4)
    monkeypatch.setattr("store.checkpoint.FINAL_ROWS", 64)
    monkeypatch.setattr("store.checkpoint._FINAL_ENTRIES", 16)


class Plain:
    """A store's log written by hand, and what it means worked out in the plainest way."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.rows: list[Row] = []
        self.removals = Removals()

    def append(self, action: str, removal: Removal | None = None, **fields: Any) -> Commit:
        self.store.catalog()
        digest = write_removal(self.store.backend, removal) if removal else ""
        draft = Draft(action, action, {}, removal=digest, **fields)
        commit = self.store._log.append(lambda: draft)
        self.removals = self.removals.after(commit, removal)
        self.store._catalog.catch_up()
        write_checkpoint_if_due(self.store.backend, self.store._log, self.store._catalog, commit)
        return commit

    def publish(self, start: int, count: int, pack: str) -> None:
        """Publish those of `count` rows that a writer may not rely on, as a build does."""
        table, known = synthetic_rows(start, count, pack), self.visible(free=True)
        new = [version not in known for version in table["version"].to_pylist()]
        table = table.filter(pa.array(new, pa.bool_()))
        if not len(table):
            return
        index = encode_index(sorted_rows(table), {pack: 1})
        write_index(self.store.backend, index)
        commit = self.append(PUBLISH, indexes=(index.digest,), elements=len(table))
        self.rows += rows_of(table, commit=commit.sequence)
        self.removals = self.removals.without([pack])

    def living(self) -> list[Row]:
        return [row for row in self.rows if not self.removals.is_dead(row.pack, row.commit)]

    def visible(self, *, free: bool = False) -> dict[str, Row]:
        condemned = self.removals.condemned.packs
        chosen: dict[str, Row] = {}
        for row in [] if free else reversed(self.living()):
            chosen[row.version] = row
        for row in reversed(self.living()):
            if row.pack not in condemned:
                chosen[row.version] = row
        return chosen

    def check(self, store: Store, generator: random.Random) -> None:
        catalog, visible, free = store.catalog(), self.visible(), self.visible(free=True)
        versions = sorted({row.version for row in self.rows} | {"f" * 64, "no version"})
        asked = generator.sample(versions, min(len(versions), 12))
        recipes = [row.recipe for row in generator.sample(self.rows, min(len(self.rows), 12))]

        assert catalog.get_all(asked) == {v: visible[v] for v in asked if v in visible}
        assert catalog.known(asked) == {v for v in asked if v in free}
        made: dict[str, Row] = {}
        newest: dict[str, Row] = {}
        for row in sorted(visible.values(), key=lambda row: (row.commit, row.version)):
            newest[row.name] = row
        for row in sorted(free.values(), key=lambda row: (row.commit, row.name, row.version)):
            made.setdefault(row.recipe, row)
        assert catalog.find_many(recipes) == {r: made[r] for r in recipes if r in made}
        for row in generator.sample(self.rows, min(len(self.rows), 3)):
            assert catalog.latest(row.name) == newest.get(row.name)
            assert catalog.find_all(row.recipe) == [r for r in free.values() if r.recipe == row.recipe]
        assert len(catalog) == len(visible)
        assert catalog.rows() == sorted(visible.values(), key=lambda row: (row.name, row.commit, row.version))
        scanned = pa.concat_tables([*catalog.scan(["version", "commit"]), _NOTHING]).to_pylist()
        assert {row["version"]: row["commit"] for row in scanned} == {v: r.commit for v, r in visible.items()}
        assert catalog.packs().keys() == {row.pack for row in self.living()}
        assert catalog.removals.condemned == self.removals.condemned


_NOTHING = pa.table({"version": pa.array([], pa.string()), "commit": pa.array([], pa.int64())})


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(6))
def test_the_catalog_is_what_a_plain_reading_of_the_log_gives(seed: int) -> None:
    generator = random.Random(seed)
    backend = MemoryBackend()
    create_format(backend)
    store = Store(backend)
    plain = Plain(store)
    packs = [f"{n:064x}" for n in range(6)]
    for _ in range(40):
        act = generator.choice(["publish"] * 5 + ["condemn", "collect", "clean", "repair"])
        if act == "publish":
            pack = generator.choice(packs)
            if pack not in plain.removals.dying.packs:
                plain.publish(generator.randrange(60), generator.choice([1, 2, 3, 9, 30]), pack)
        elif act == "condemn":
            plain.append(CONDEMN, Removal(frozenset(generator.sample(packs, 2))))
        elif act == "collect" and plain.removals.condemned.packs:
            plain.append(COLLECT, Removal(plain.removals.condemned.packs))
            if generator.random() < 0.7:
                plain.append(SWEPT)
        elif act == "clean":
            store.catalog()
            written = write_checkpoint(backend, store._log, store._catalog, without_dead=True)
            assert not written.removals.dead
        elif act == "repair" and plain.rows:
            _repair(plain, generator)
        if generator.random() < 0.3:
            plain.check(store, generator)
            plain.check(Store(backend), generator)
    plain.check(store, generator)
    fresh = Store(backend)
    plain.check(fresh, generator)
    assert [commit.sequence for commit in fresh.log()] == list(range(1, fresh._log.tip.sequence + 1))
    for key in [item.key for item in backend.list(CHECKPOINT_PREFIX)]:
        backend.delete(key)
    plain.check(Store(backend), generator)


def _repair(plain: Plain, generator: random.Random) -> None:
    """Replace the index of one publish by a file of those of its rows that are left."""
    commits = {commit.sequence: commit for commit in plain.store.log() if commit.action == PUBLISH}
    chosen = commits[generator.choice(plain.rows).commit]
    named = [number for number, commit in commits.items() if commit.indexes == chosen.indexes]
    rows = [row for row in plain.living() if row.commit in named]
    data = encode_rows(rows, {"packs": {row.pack: 1 for row in rows}})
    plain.store.backend.put(index_key(sha256(data)), data)
    plain.append(REPAIR, indexes=(sha256(data),), replaces=chosen.indexes)
