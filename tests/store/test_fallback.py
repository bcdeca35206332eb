"""What a checkpoint leads to may be damaged or gone: every question is answered from the log's own files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from store import Store
from store.checkpoint import write_checkpoint
from store.directory import read_directory
from store.errors import IntegrityError
from store.format import index_key
from store.gc import collect
from store.log import PIN, Draft
from store.removals import Removal
from store.selection import choose
from tests.said import said
from tests.store.samples import memory
from tests.store.test_checkpoint import damage_segments, delete_segments, fill, quick_store, reopened, small
from tests.store.test_removals import append, pack_of

__all__ = ["quick_store", "small"]  # fixtures


@contextmanager
def damaged_group(store: Store, index: str, number: int) -> Iterator[None]:
    """Let a bit of one row group of a large index file be flipped."""
    good = store.backend.read(index_key(index))
    bad = bytearray(good)
    bad[read_directory(store.backend, index).groups[number].offset + 10] ^= 1
    store.backend.put(index_key(index), bad)
    yield
    store.backend.put(index_key(index), good)


def scanned(store: Store) -> list[tuple[str, str, int]]:
    tables = store.catalog().scan(["name", "version", "commit"])
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def large_segments(store: Store) -> list[str]:
    return [segment.index for segment in store._log.checkpoint.segments if segment.lead]


def test_a_scan_goes_on_where_a_segment_is_damaged(
    quick_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("store.source._WINDOW_GROUPS", 2)
    for number in range(12):  # names come again with other versions, so that many groups begin within a name
        publish = [memory(name, size=16 + number // 4) for name in range(number % 4, 20, 2)]
        quick_store.publish(publish, message=str(number))
    right = scanned(quick_store)
    groups = [
        (index, number)
        for index in large_segments(quick_store)
        for number in range(len(read_directory(quick_store.backend, index).groups))
    ]
    running = [reopened(quick_store) for _ in groups]
    assert len(right) == len(set(right)) == 60
    assert len(groups) > 10
    middle = 0

    for (index, number), before in zip(groups, running, strict=True):
        before.catalog()
        with damaged_group(quick_store, index, number):
            for opened in (reopened(quick_store), before):
                caplog.clear()
                tables = opened.catalog().scan(["name", "version", "commit"])
                first = next(tables)
                middle += not said(caplog, "store")
                rest = [row for table in tables for row in table.to_pylist()]
                assert [tuple(row.values()) for row in first.to_pylist() + rest] == right
                assert "is opened again without its newest checkpoint" in caplog.text
    assert middle > len(groups)


@pytest.mark.parametrize("harm", [delete_segments, damage_segments], ids=lambda harm: harm.__name__)
def test_every_question_is_answered_without_a_damaged_segment(
    quick_store: Store, harm: Callable[[Store], None], caplog: pytest.LogCaptureFixture
) -> None:
    fill(quick_store, 24, per_commit=4)
    [ref] = quick_store.publish([memory(800)], message="condemned, so that rows have to be counted")
    append(quick_store, "condemn", Removal(frozenset({pack_of(quick_store, ref)})))
    names = sorted(row.name for row in quick_store.catalog().rows())
    kept = collect(quick_store).kept
    questions: list[tuple[Callable[[Store], Any], Any]] = [
        (lambda store: [name for name, *_ in scanned(store)], names),
        (lambda store: [row.name for row in choose(store.catalog(), ["memory/doc/*"])], names),
        (lambda store: len(store.catalog()), 97),
        (lambda store: len(store.catalog().rows()), 97),
        (lambda store: collect(store).kept, kept),
    ]
    running = [reopened(quick_store) for _ in questions]
    for store in running:
        store.catalog()
    harm(quick_store)

    for (ask, answer), store in zip(questions, running, strict=True):
        for opened in (store, reopened(quick_store)):
            caplog.clear()
            assert ask(opened) == answer
            assert "is opened again without its newest checkpoint" in caplog.text


def test_a_checkpoint_is_written_whatever_the_last_one_lost(
    quick_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    fill(quick_store, 4, per_commit=4)
    [index] = large_segments(quick_store)

    with damaged_group(quick_store, index, 0):
        reopened(quick_store).publish([memory(n, size=16) for n in range(100, 116)], message="more")

        assert "is opened again without its newest checkpoint" in caplog.text
        assert "was not written" not in caplog.text
        caplog.clear()
        assert len(scanned(reopened(quick_store))) == 32
        assert not said(caplog, "store")


@pytest.mark.parametrize("number", [0, -1])
def test_a_damaged_index_of_the_log_ends_a_scan(quick_store: Store, number: int) -> None:
    quick_store.publish([memory(n, size=16) for n in range(80)], message="large")
    write_checkpoint(quick_store.backend, quick_store._log, quick_store._catalog)
    [index] = next(quick_store.log()).indexes
    assert large_segments(quick_store) == [index]

    with damaged_group(quick_store, index, number), pytest.raises(IntegrityError, match=index):
        scanned(reopened(quick_store))
    assert len(scanned(quick_store)) == 80


def test_who_prepares_a_commit_is_asked_again_if_the_log_was_opened_anew(quick_store: Store) -> None:
    fill(quick_store, 8)
    seen = []

    def prepare() -> Draft:
        seen.append(quick_store._log.tip.sequence)
        if len(seen) == 1:
            reopened(quick_store).publish([memory(500)], message="meanwhile")
            assert quick_store._log.distrust_checkpoint()
        return Draft(action=PIN, message="a pin", run={}, snapshot="5" * 64)

    assert quick_store._log.append(prepare).sequence == 10
    assert seen == [8, 9]
