"""Heads on the command line: moved by compare-and-swap, with a log, and back again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import Store
from tests.store.samples import memory

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(workplace: Path) -> Store:
    """Three snapshots, tagged a, b and c."""
    store = Store.create(str(workplace / "build" / "store"))
    refs = store.publish([memory(number) for number in range(3)], message="three")
    for count, tag in enumerate("abc", start=1):
        store.tag(tag, store.pin(refs[:count], message=tag).id)
    return store


def as_json(result: tuple[int, str, str]) -> Any:
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def test_a_head_is_made_moved_listed_and_logged(cellar: Cellar, store: Store) -> None:
    tags = store.tags()
    assert cellar("head")[:2] == (0, "no head yet\n")

    assert as_json(cellar("head", "move", "main", "a", "--json")) == {
        "head": "main",
        "before": None,
        "snapshot": tags["a"],
    }
    assert cellar("head", "move", "main", "b")[1] == f"head main: {tags['a']} -> {tags['b']}\n"

    assert as_json(cellar("head", "--json")) == {"main": tags["b"]}
    assert cellar("head")[1] == f"main  {tags['b']}\n"
    assert [entry["snapshot"] for entry in as_json(cellar("head", "log", "main", "--json"))] == [
        tags["b"],
        tags["a"],
    ]
    assert cellar("head", "log", "main")[1].splitlines()[1].startswith(tags["b"])


def test_an_expectation_that_does_not_hold_moves_nothing(cellar: Cellar, store: Store) -> None:
    tags = store.tags()

    assert cellar("head", "move", "main", "a", "--expect", "b")[0] == 7
    assert cellar("head", "move", "main", "a", "--expect", "none")[0] == 0
    assert cellar("head", "move", "main", "b", "--expect", "none")[0] == 7
    code, _, err = cellar("head", "move", "main", "b", "--expect", "c")
    assert (code, f"points to {tags['a'][:12]}" in err) == (7, True)
    assert cellar("head", "move", "main", "b", "--expect", tags["a"][:10])[0] == 0
    assert cellar("head", "move", "main", "nowhere")[0] == 4
    assert cellar("head", "move", "a/b", "a")[0] == 2

    assert store.head("main") == tags["b"]


def test_a_head_goes_back_step_by_step(cellar: Cellar, store: Store) -> None:
    tags = store.tags()
    for tag in "abc":
        cellar("head", "move", "main", tag)

    assert as_json(cellar("head", "rollback", "main", "--json"))["snapshot"] == tags["b"]
    assert as_json(cellar("head", "rollback", "main", "--json"))["snapshot"] == tags["a"]
    code, _, err = cellar("head", "rollback", "main")

    assert (code, f"cellar head rollback main --to {tags['b'][:12]}` takes it to" in err) == (4, True)
    logged = [entry["snapshot"] for entry in as_json(cellar("head", "log", "main", "--json"))]
    assert logged == [tags[tag] for tag in "abcba"[::-1]]


def test_a_head_goes_back_only_to_where_it_was(cellar: Cellar, store: Store) -> None:
    tags = store.tags()
    for tag in "ab":
        cellar("head", "move", "main", tag)

    assert as_json(cellar("head", "rollback", "main", "--to", "a", "--json"))["before"] == tags["b"]
    code, _, err = cellar("head", "rollback", "main", "--to", "c")

    assert (code, "cellar head log main" in err) == (4, True)
    code, _, err = cellar("head", "rollback", "main")
    assert (code, f"stands at {tags['a'][:12]}, the oldest place that it remembers" in err) == (4, True)
    assert store.head("main") == tags["a"]
    assert cellar("head", "rollback", "other")[0] == cellar("head", "log", "other")[0] == 4


def test_a_head_says_who_moved_it_and_why(cellar: Cellar, store: Store) -> None:
    cellar("head", "move", "main", "a", "--why", "the first")
    cellar("head", "move", "main", "b")
    cellar("head", "rollback", "main", "--why", "b was worse")

    logged = as_json(cellar("head", "log", "main", "--json"))

    assert [entry["action"] for entry in logged] == ["rollback", "move", "move"]
    assert [entry["why"] for entry in logged] == ["b was worse", "", "the first"]
    assert all("@" in entry["by"] for entry in logged)
    assert cellar("head", "log", "main")[1].splitlines()[1].endswith("b was worse")
    code, _, err = cellar("head", "move", "main", "c", "--why", "x" * 401)
    assert (code, "a head keeps 400" in err) == (2, True)
