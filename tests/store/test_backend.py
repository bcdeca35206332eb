"""One conformance suite for every backend, those of the tests included."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from store.backend import Backend, open_backend
from store.backend.local import LocalBackend
from store.errors import KeyExists, KeyMissing, TokenMismatch
from tests.seaweedfs import S3Server
from tests.store.faulty import FaultyBackend
from tests.store.memory import MemoryBackend


@pytest.fixture(params=["file", "s3", "memory", "faulty"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Return an empty backend of each kind."""
    match request.param:
        case "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            for name, value in server.environment().items():
                monkeypatch.setenv(name, value)
            return open_backend(server.url())
        case "memory":
            return MemoryBackend()
        case "faulty":
            return FaultyBackend(LocalBackend(tmp_path / "store"))
    return LocalBackend(tmp_path / "store")


def test_what_was_put_is_read_back_whole_and_in_ranges(backend: Backend) -> None:
    backend.put("packs/aa/one", b"0123456789")

    assert backend.read("packs/aa/one") == b"0123456789"
    assert backend.read("packs/aa/one", offset=3, length=4) == b"3456"
    assert backend.read("packs/aa/one", offset=7) == b"789"
    assert backend.read("packs/aa/one", offset=0, length=0) == b""


def test_a_range_past_the_end_is_cut_short(backend: Backend) -> None:
    backend.put("k", b"0123456789")

    assert backend.read("k", offset=8, length=10) == b"89"
    assert backend.read("k", offset=10, length=1) == b""
    assert backend.read("k", offset=10) == b""
    assert backend.read("k", offset=20, length=10) == b""
    assert backend.read("k", offset=20) == b""
    assert backend.read("k", offset=8, length=2**50) == b"89"
    assert backend.read("k", offset=2**61, length=2**50) == b""


def test_put_replaces_and_empty_objects_exist(backend: Backend) -> None:
    backend.put("k", b"first")
    backend.put("k", bytearray())

    assert backend.read("k") == b""
    assert backend.read("k", offset=0, length=5) == b""
    assert backend.read_with_token("k")[0] == b""
    assert [(item.key, item.size) for item in backend.list("")] == [("k", 0)]
    info = backend.info("k")
    assert info is not None
    assert info.size == 0


def test_a_body_is_kept_as_it_was_when_it_was_written(backend: Backend) -> None:
    body = bytearray(b"before")
    backend.put("put", body)
    backend.create("create", body)
    body[:] = b"after!"

    assert backend.read("put") == backend.read("create") == b"before"


def test_an_object_of_many_megabytes_is_kept_whole(backend: Backend) -> None:
    body = random.Random(1).randbytes(20 * 1024**2 + 1)

    backend.put("packs/aa/big", body)

    assert backend.read("packs/aa/big") == body
    assert backend.read("packs/aa/big", offset=len(body) - 3) == body[-3:]
    assert backend.read("packs/aa/big", offset=1024**2, length=9_000_000) == body[1024**2 :][:9_000_000]


def test_keys_may_hold_any_letter_that_a_file_name_may(backend: Backend) -> None:
    names = ["a b", "a+b", "a%20b", "a&b=c?d#e", "é", "日本", "a'b\"c", "~(x)!*,;:@$", "A", "a" * 200]
    for number, name in enumerate(names):
        backend.create(f"refs/{name}", bytes(number))

    assert sorted(item.key for item in backend.list("refs/")) == sorted(f"refs/{name}" for name in names)
    for number, name in enumerate(names):
        assert len(backend.read(f"refs/{name}")) == number
        assert [item.key for item in backend.list(f"refs/{name}") if item.key == f"refs/{name}"]
        backend.delete(f"refs/{name}")
    assert list(backend.list("")) == []


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


def test_the_time_of_an_object_is_that_of_its_last_write(backend: Backend) -> None:
    backend.put("first", b"")
    backend.put("again", b"")
    backend.put("second", b"")
    backend.put("again", b"2")

    times = {item.key: item.modified for item in backend.list("")}
    assert times["first"] <= times["second"] <= times["again"]
    for key, modified in times.items():
        info = backend.info(key)
        assert info is not None
        assert abs(info.modified - modified) < timedelta(seconds=1)  # a listing may show whole seconds


def test_a_folder_is_no_object(backend: Backend) -> None:
    backend.put("log/1", b"")

    assert backend.info("log") is None
    with pytest.raises(KeyMissing, match="log"):
        backend.read("log")


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
    backend.delete("never/was")

    assert backend.info("k") is None
    assert list(backend.list("")) == []
    with pytest.raises(KeyMissing):
        backend.read("k")


def test_what_was_deleted_can_be_created_again(backend: Backend) -> None:
    backend.create("refs/tags/t", b"first")
    backend.delete("refs/tags/t")

    backend.create("refs/tags/t", b"second")

    assert backend.read("refs/tags/t") == b"second"


def test_a_token_of_deleted_content_replaces_nothing(backend: Backend) -> None:
    backend.create("h", b"one")
    _, token = backend.read_with_token("h")
    backend.delete("h")
    with pytest.raises((KeyMissing, TokenMismatch)):
        backend.replace("h", b"two", token=token)
    backend.create("h", b"three")

    with pytest.raises(TokenMismatch):
        backend.replace("h", b"two", token=token)

    assert backend.read("h") == b"three"


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
    assert [item.key for item in backend.list("many/", after="many/00009.5")] == [
        f"many/{number:05d}" for number in range(10, 1050)
    ]
    assert [item.key for item in backend.list("many/", after="many/01048")] == ["many/01049"]
    assert list(backend.list("many/", after="many/01049")) == []


def test_a_listing_goes_on_while_objects_come_and_go(backend: Backend) -> None:
    for number in range(0, 20, 2):
        backend.put(f"log/{number:02d}", b"x")

    seen = []
    for item in backend.list("log/"):
        seen.append(item.key)
        backend.put(f"log/{len(seen) * 2 - 1:02d}", b"x")
        backend.delete("log/18")

    assert seen == sorted(seen)
    assert {f"log/{number:02d}" for number in range(0, 18, 2)} <= set(seen)


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
