"""Sets of elements that a new snapshot is made of, against a plain graph of names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import Row, Store
from store.errors import CellarError, ElementNotFound, InputError, InvalidName, MissingRequirement
from store.format import sha256
from store.selection import choose, closure, replace, retire
from tests.store.samples import codec, memory

GRAPHS = st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=8)
"""For each element, in order, which earlier ones it requires (numbers modulo its own)."""


def row(name: str, *requires: Row, take: int = 0) -> Row:
    version = sha256(f"{name} {take} {[other.version for other in requires]}".encode())
    versions = tuple(sorted(other.version for other in requires))
    return Row(name, name.partition("/")[0], version, version, "p", 8, 1, "m", versions)


def rows_of(graph: list[set[int]]) -> list[Row]:
    rows: list[Row] = []
    for number, required in enumerate(graph):
        rows.append(
            row(f"skill/{number}", *{rows[n % number].version: rows[n % number] for n in required}.values())
            if number
            else row("skill/0")
        )
    return rows


def is_closed(rows: Iterable[Row]) -> bool:
    rows = list(rows)
    return {version for row in rows for version in row.requires} <= {row.version for row in rows}


@given(graph=GRAPHS, named=st.sets(st.integers(0, 7), min_size=1))
def test_what_is_left_after_a_retirement_is_complete(graph: list[set[int]], named: set[int]) -> None:
    rows = rows_of(graph)
    names = sorted({f"skill/{n % len(rows)}" for n in named})

    parted = retire(rows, names, with_dependents=True)

    assert is_closed(parted.kept)
    assert sorted([*parted.kept, *parted.named, *parted.dependents], key=lambda row: row.name) == rows
    assert [row.name for row in parted.named] == names
    for dependent in parted.dependents:  # none goes without need
        assert not is_closed([*parted.kept, dependent])
    if not parted.dependents:
        assert retire(rows, names) == parted
    else:
        with pytest.raises(MissingRequirement):
            retire(rows, names)


def test_a_refused_retirement_names_what_requires_it() -> None:
    base = row("codec/c")
    rows = [base, *(row(f"memory/{number}", base) for number in range(5))]

    with pytest.raises(MissingRequirement, match=r"memory/0, memory/1, memory/2 and 2 more require codec/c;"):
        retire(rows, ["codec/*"])
    with pytest.raises(MissingRequirement, match=r"^memory/0 requires codec/c;"):
        retire(rows[:2], ["codec/c"])
    with pytest.raises(ElementNotFound, match="memory/9"):
        retire(rows, ["memory/0", "memory/9"])


def test_a_name_that_looks_like_a_glob_means_itself_only() -> None:
    rows = [row("memory/a[1]"), row("memory/a1"), row("memory/b")]

    assert [row.name for row in retire(rows, ["memory/a[1]"]).named] == ["memory/a[1]"]
    assert [row.name for row in retire(rows[1:], ["memory/a[1]"]).named] == ["memory/a1"]


@given(graph=GRAPHS, take=st.integers(0, 7))
def test_a_replaced_set_is_complete_or_refused(graph: list[set[int]], take: int) -> None:
    rows = rows_of(graph)
    old = rows[take % len(rows)]
    by_version = {row.version: row for row in rows}
    new = dataclasses.replace(old, version=sha256(b"new"))
    chosen = closure([new], lambda versions: {v: by_version[v] for v in versions})

    try:
        made = replace(rows, chosen)
    except MissingRequirement:
        assert any(old.version in row.requires for row in rows)
        return

    assert is_closed(made.rows)
    assert [row.name for row in made.rows] == [row.name for row in rows]
    assert made.replaced == ((old, new),)
    assert made.added == ()


def test_what_is_not_there_yet_is_added_with_what_it_requires() -> None:
    base, other = row("codec/c"), row("codec/d")
    added = row("memory/new", other)
    stored = {r.version: r for r in (base, other, added)}

    made = replace([base], closure([added], lambda versions: {v: stored[v] for v in versions}))

    assert made.rows == (base, other, added)
    assert made.added == (other, added)
    assert made.replaced == ()


def test_a_replacement_that_others_cannot_do_without_is_refused_by_name() -> None:
    old, new = row("codec/c"), row("codec/c", take=1)
    rows = [old, row("memory/a", old), row("memory/b", old)]

    with pytest.raises(
        MissingRequirement, match="memory/a and memory/b require the present version of codec/c"
    ):
        replace(rows, [new])
    with pytest.raises(InputError, match="memory/x would be in the snapshot twice"):
        replace(rows, [row("memory/x"), row("memory/x", take=1)])
    both = replace(rows, [new, row("memory/a", new), row("memory/b", new)])
    assert is_closed(both.rows)
    assert len(both.replaced) == 3


def test_elements_of_a_store_are_chosen_by_name_glob_and_reference(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    required = codec()
    elements = [required, *(memory(number, requires=(required.version,)) for number in range(3))]
    refs = store.publish(elements, message="four")
    [other] = store.publish([memory(1)], message="another version")
    catalog = store.catalog()

    def versions(*texts: str) -> list[str]:
        return [row.version for row in choose(catalog, texts)]

    assert versions("memory/doc/00001") == [other.version]
    assert versions("memory/doc/*") == [refs[1].version, other.version, refs[3].version]
    assert versions(str(refs[2])) == [refs[2].version]
    assert versions(str(refs[2])[:-56]) == [refs[2].version]
    assert versions("codec/c", "memory/doc/00000") == [refs[0].version, refs[1].version]
    whole = closure(choose(catalog, ["memory/doc/00000"]), catalog.get_all)
    assert {row.version for row in whole} == {refs[0].version, refs[1].version}
    refused: dict[str, type[CellarError]] = {
        "memory/none*": ElementNotFound,
        f"codec/d@{refs[0].version}": ElementNotFound,
        f"codec/c@{refs[0].version[:7]}": ElementNotFound,
        f"codec/d@{refs[0].version[:12]}": ElementNotFound,
        refs[0].version: InvalidName,
    }
    for text, error in refused.items():
        with pytest.raises(error):
            choose(catalog, [text])
