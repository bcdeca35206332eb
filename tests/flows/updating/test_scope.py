"""What an update is about, and what it refuses before any work."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.errors import UsageError
from flows.params import Params
from flows.updating.head_state import HeadState
from flows.updating.scope import Scope
from store.errors import ElementNotFound

AT = datetime(2026, 12, 1, tzinfo=UTC)


def params(folder: Path, file: str = "{partition}.jsonl") -> Params:
    return Params.model_validate({"corpus": {"reader": "jsonl", "path": str(folder / file)}})


def scope(folder: Path, **options: Any) -> Scope:
    return Scope.of(params(folder), at=AT, **options)


@pytest.mark.parametrize("option", ["partitions", "dropped"])
def test_a_source_without_partitions_has_none_to_update_or_drop(tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError, match=r"no \{partition\}"):
        Scope.of(params(tmp_path, "docs.jsonl"), at=AT, **{option: ["lib"]})


def test_it_decides_about_memories_below_the_names_of_its_partitions(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    chosen = scope(tmp_path, partitions=["a"], dropped=["b.c"])
    decided = [
        name
        for name in ("memory/a/x", "memory/a/x/y", "memory/b.c/x", "memory/b/x", "memory/ab/x", "memory/a")
        if chosen.decides(name)
    ]
    assert decided == ["memory/a/x", "memory/a/x/y", "memory/b.c/x"]


def test_a_partition_that_the_head_lacks_cannot_be_dropped(tmp_path: Path) -> None:
    base = HeadState("docs", memories={"memory/a/x": "0" * 64})
    scope(tmp_path, dropped=["a"]).check(base, "docs")
    with pytest.raises(ElementNotFound, match="no partition x to drop"):
        scope(tmp_path, dropped=["a", "x"]).check(base, "docs")


def test_many_partitions_cost_no_more_for_each_memory_than_one(tmp_path: Path) -> None:
    """A look-up for each memory, not one for each memory and partition."""
    days = [f"2026-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]
    names = [f"memory/{days[number % len(days)]}/{number}" for number in range(100_000)]
    base = HeadState("docs", memories=dict.fromkeys(names, "0" * 64))
    chosen = scope(tmp_path, dropped=days)

    began = time.process_time()
    chosen.check(base, "docs")
    assert all(map(chosen.decides, names))

    assert time.process_time() - began < 1.5  # 4 s and more with a look at each partition


def test_a_corpus_with_a_dot_in_its_name_is_no_partition_of_another(tmp_path: Path) -> None:
    from store import Ref

    report = Ref("corpus/docs.api/report", "0" * 64)
    plain = HeadState("docs", corpora={"docs.api": report}, is_partition={"docs.api": False})
    part = HeadState("docs", corpora={"docs.api": report}, is_partition={"docs.api": True})
    named = params(tmp_path, "api.jsonl")
    named = named.model_copy(update={"corpus": named.corpus.model_copy(update={"name": "docs.api"})})

    assert (plain.partitions("docs"), part.partitions("docs")) == ([], ["api"])
    plain.check_source(named)
    part.check_source(params(tmp_path))
    for head, source in ((plain, params(tmp_path)), (part, named)):
        with pytest.raises(UsageError, match="was made from"):
            head.check_source(source)
