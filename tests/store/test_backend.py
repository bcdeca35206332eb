"""One conformance suite for every backend."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from store.backend import Backend
from store.backend.local import LocalBackend
from store.errors import KeyExists, KeyMissing, TokenMismatch


def test_what_was_put_is_read_back_whole_and_in_ranges(backend: Backend) -> None:
    backend.put("packs/aa/one", b"0123456789")

    assert backend.read("packs/aa/one") == b"0123456789"
    assert backend.read("packs/aa/one", offset=3, length=4) == b"3456"
    assert backend.read("packs/aa/one", offset=7) == b"789"
    assert backend.read("packs/aa/one", offset=0, length=0) == b""


def test_a_range_past_the_end_is_cut_short(backend: Backend) -> None:
    backend.put("k", b"0123456789")

    assert backend.read("k", offset=8, length=10) == b"89"
    assert backend.read("k", offset=20, length=10) == b""


def test_put_replaces_and_empty_objects_exist(backend: Backend) -> None:
    backend.put("k", b"first")
    backend.put("k", bytearray())

    assert backend.read("k") == b""
    info = backend.info("k")
    assert info is not None
    assert info.size == 0


def test_info_tells_size_and_time(backend: Backend) -> None:
    backend.put("k", b"12345")

    info = backend.info("k")

    assert info is not None
    assert (info.key, info.size) == ("k", 5)
    assert abs(info.modified - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_clock_is_the_one_that_dates_objects(backend: Backend) -> None:
    backend.put("k", b"x")
    before = backend.now()
    backend.put("k", b"y")
    after = backend.now()

    info = backend.info("k")
    [listed] = backend.list("k")
    assert info is not None
    for modified in (info.modified, listed.modified):
        # A server may write whole seconds on its answers.
        assert before - timedelta(seconds=1) <= modified <= after + timedelta(seconds=1)
    assert before.utcoffset() == timedelta(0)


def test_reading_the_clock_leaves_nothing_behind(backend: Backend) -> None:
    backend.put("k", b"x")

    backend.now()

    assert [item.key for item in backend.list("")] == ["k"]


def test_a_folder_says_the_time_of_its_files_not_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LocalBackend(tmp_path)
    monkeypatch.setattr("time.time", lambda: 0.0)

    assert backend.now() > datetime(2020, 1, 1, tzinfo=UTC)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_key_is_reported_by_name(backend: Backend) -> None:
    assert backend.info("no/such") is None
    with pytest.raises(KeyMissing, match="no/such"):
        backend.read("no/such")
    with pytest.raises(KeyMissing, match="no/such"):
        backend.read_with_token("no/such")


def test_delete_removes_and_may_be_repeated(backend: Backend) -> None:
    backend.put("k", b"x")

    backend.delete("k")
    backend.delete("k")

    assert backend.info("k") is None


def test_create_refuses_an_existing_key_and_keeps_its_content(backend: Backend) -> None:
    backend.create("log/1", b"winner")

    with pytest.raises(KeyExists, match="log/1"):
        backend.create("log/1", b"loser")

    assert backend.read("log/1") == b"winner"


def test_replace_takes_only_the_current_token(backend: Backend) -> None:
    backend.create("h", b"one")
    _, token = backend.read_with_token("h")
    backend.replace("h", b"two", token=token)

    with pytest.raises(TokenMismatch, match="h"):
        backend.replace("h", b"three", token=token)

    assert backend.read("h") == b"two"


def test_replace_of_a_missing_key_is_refused(backend: Backend) -> None:
    backend.create("other", b"x")
    _, token = backend.read_with_token("other")

    with pytest.raises((KeyMissing, TokenMismatch)):
        backend.replace("h", b"x", token=token)

    assert backend.info("h") is None


def test_listing_is_ordered_complete_and_resumable(backend: Backend) -> None:
    for number in (3, 1, 2):
        backend.put(f"log/{number:03d}.json", bytes(number))
    backend.put("logs", b"not below the prefix")
    backend.put("index/a", b"")

    listed = [(item.key, item.size) for item in backend.list("log/")]

    assert listed == [("log/001.json", 1), ("log/002.json", 2), ("log/003.json", 3)]
    assert [item.key for item in backend.list("log/", after="log/001.json")] == [
        "log/002.json",
        "log/003.json",
    ]
    assert [item.key for item in backend.list("log/00")] == [key for key, _ in listed]
    assert sorted(item.key for item in backend.list("")) == [
        "index/a",
        "log/001.json",
        "log/002.json",
        "log/003.json",
        "logs",
    ]
    assert list(backend.list("nothing/")) == []


def test_listing_goes_beyond_a_page_of_a_thousand(backend: Backend) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: backend.put(f"many/{number:05d}", b"x"), range(1050)))

    assert [item.key for item in backend.list("many/")] == [f"many/{number:05d}" for number in range(1050)]


def test_of_racing_creators_exactly_one_wins(backend: Backend) -> None:
    start = threading.Barrier(8)

    def race(number: int) -> bool:
        start.wait()
        try:
            backend.create("race", str(number).encode())
        except KeyExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(race, range(8)))

    assert won.count(True) == 1
    assert backend.read("race") == str(won.index(True)).encode()


def test_of_racing_replacers_exactly_one_wins(backend: Backend) -> None:
    backend.create("head", b"start")
    _, token = backend.read_with_token("head")
    start = threading.Barrier(8)

    def race(number: int) -> bool:
        start.wait()
        try:
            backend.replace("head", str(number).encode(), token=token)
        except TokenMismatch:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(race, range(8)))

    assert won.count(True) == 1
    assert backend.read("head") == str(won.index(True)).encode()
