"""The read cache spares requests, returns no wrong byte, keeps its limit, and is no trouble if it fails."""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import ReadCache, Snapshot, Store
from store.backend import open_backend
from store.errors import IntegrityError, StorageUnavailable
from store.format import pack_key, sha256, snapshot_key, unseal
from tests.said import said
from tests.store.requests import Requests
from tests.store.samples import codec, memory

ROOT = Path(__file__).parents[2]
COUNT = 30
SIZE = 2000
LARGE = 2**30


@pytest.fixture
def cache(tmp_path: Path) -> ReadCache:
    return ReadCache(tmp_path / "cache", LARGE)


@pytest.fixture
def identity(store: Store) -> str:
    """Return the id of a snapshot of 31 elements."""
    needed = (codec().version,)
    elements = [codec(), *(memory(number, size=SIZE, requires=needed) for number in range(COUNT))]
    return store.pin(store.publish(elements, message="all"), message="all").id


def reader(url: str, cache: ReadCache, identity: str) -> tuple[Snapshot, Requests]:
    """Open the snapshot anew through the cache, with its requests counted from then on."""
    backend = open_backend(url)
    snapshot = Store(backend, cache=cache).snapshot(identity)
    return snapshot, Requests(backend)


def entries(cache: ReadCache) -> list[Path]:
    return sorted(path for path in cache.folder.glob("??/*"))


def test_what_was_read_once_needs_no_request_again(store_url: str, identity: str, cache: ReadCache) -> None:
    first, before = reader(store_url, cache, identity)
    read = {row.name: payload for row, payload in first.stream()}
    again, requests = reader(store_url, cache, identity)

    assert before.count > 0
    assert {row.name: payload for row, payload in again.stream()} == read
    assert again.read("memory/doc/00007") == memory(7, size=SIZE).payload
    assert requests.count == 0


def test_a_stream_asks_only_for_what_the_cache_lacks(store_url: str, identity: str, cache: ReadCache) -> None:
    snapshot, requests = reader(store_url, cache, identity)
    for number in range(COUNT):
        if number != 20:
            snapshot.read(f"memory/doc/{number:05d}")
    snapshot.read("codec/c")
    requests.bytes = 0

    assert len(list(snapshot.stream())) == COUNT + 1
    assert requests.bytes == SIZE


def test_a_damaged_entry_is_dropped_and_read_again(
    store_url: str, identity: str, cache: ReadCache, caplog: pytest.LogCaptureFixture
) -> None:
    right = dict(reader(store_url, cache, identity)[0].stream())
    generator = random.Random(3)
    for path in entries(cache):
        data = bytearray(path.read_bytes())
        change = generator.randrange(3)
        if change == 0:
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        path.write_bytes(data[: len(data) // 2] if change == 1 else data + b"x" if change == 2 else data)

    snapshot, requests = reader(store_url, cache, identity)
    with caplog.at_level(logging.WARNING):
        assert dict(snapshot.stream()) == right

    assert requests.count > 0
    assert len(said(caplog, "store")) == len(entries(cache))
    assert all(sha256(path.read_bytes()) == path.name for path in entries(cache))


def test_only_checked_payloads_and_rows_are_kept_and_names_are_always_asked_for(
    store_url: str, identity: str, store: Store, cache: ReadCache
) -> None:
    store.tag("v1", identity)
    store.move_head("main", identity, expect=None)
    through = Store.open(store_url, cache=cache)
    payloads = {row.digest for row, _ in through.snapshot("tag:v1").stream()}
    other = store.pin([codec().ref], message="other").id
    store.move_head("main", other, expect=identity)

    assert through.snapshot("head:main").id == other
    kept = {path.name for path in entries(cache)}
    head = unseal(store.backend.read(snapshot_key(identity)), "head")
    assert kept == payloads | {group[4] for group in head["groups"]}


def test_damage_in_the_storage_is_never_kept_and_verify_looks_past_the_cache(
    store: Store, store_url: str, identity: str, cache: ReadCache
) -> None:
    snapshot, _ = reader(store_url, cache, identity)
    row = snapshot.get("memory/doc/00003")
    whole = store.backend.read(pack_key(row.pack))
    damaged = bytearray(whole)
    damaged[row.offset] ^= 1
    store.backend.put(pack_key(row.pack), damaged)
    with pytest.raises(IntegrityError, match="memory/doc/00003"):
        snapshot.read(row)
    store.backend.put(pack_key(row.pack), whole)
    assert snapshot.read(row) == memory(3, size=SIZE).payload
    store.backend.put(pack_key(row.pack), damaged)

    through = Store.open(store_url, cache=cache)

    assert through.read(row) == memory(3, size=SIZE).payload
    assert [finding.key for finding in through.verify(full=True).findings] == [pack_key(row.pack)]


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = ReadCache(tmp_path, 1000)
    contents = [bytes([number]) * 200 for number in range(6)]
    names = [sha256(content) for content in contents]
    cache.add(dict(zip(names[:5], contents[:5], strict=True)))
    for number, path in enumerate(map(cache._path, names[:5])):
        os.utime(path, (number, number))

    assert list(cache.find([names[0]])) == [names[0]]
    cache.add({names[5]: contents[5]})

    assert {path.name for path in entries(cache)} == {names[number] for number in (0, 3, 4, 5)}
    assert cache.usage().bytes == 800
    cache.add({sha256(bytes(1001)): bytes(1001)})  # larger than all of it
    assert cache.usage().entries == 4


FILL = """
import random, sys
from pathlib import Path
from store.cache import ReadCache
from store.format import sha256

cache, generator = ReadCache(Path(sys.argv[1]), 200_000), random.Random(int(sys.argv[2]))
for _ in range(25):
    chosen = [random.Random(generator.randrange(300)).randbytes(4000) for _ in range(4)]
    cache.add({sha256(data): data for data in chosen})
    assert cache.usage().bytes <= 200_000
    for name, data in cache.find(map(sha256, chosen)).items():
        assert sha256(data) == name
"""


def test_the_limit_holds_while_processes_race(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path / "cache")]
    racing = [
        subprocess.Popen([*command, str(seed)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for seed in range(3)
    ]

    errors = [process.communicate()[1] for process in racing]

    assert errors == [""] * 3
    assert 100_000 < ReadCache(tmp_path / "cache", 0).usage().bytes <= 200_000


KILLED = """
import os, signal, sys
from pathlib import Path
from store.cache import ReadCache
from store.format import sha256

replace, left = Path.replace, [int(sys.argv[2])]

def deadly(self, target):
    left[0] -= 1
    if left[0] == 0 and sys.argv[3] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    replace(self, target)
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

Path.replace = deadly
cache = ReadCache(Path(sys.argv[1]), 50_000)
for number in range(30):
    data = bytes([number]) * 4000
    cache.add({sha256(data): data})
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [1, 20])
def test_a_killed_process_leaves_a_cache_that_works(tmp_path: Path, at: int, when: str) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(at), when]
    killed = subprocess.run(command, cwd=ROOT, check=False)
    cache = ReadCache(tmp_path, 50_000)
    assert killed.returncode == -signal.SIGKILL
    for number in range(100, 130):
        data = bytes([number]) * 4000
        cache.add({sha256(data): data})
        assert list(cache.find([sha256(data)]).values()) == [data]
        assert cache.usage().bytes <= 50_000

    assert all(sha256(path.read_bytes()) == path.name for path in entries(cache))


def test_a_lost_or_senseless_count_is_made_again(tmp_path: Path) -> None:
    cache = ReadCache(tmp_path, 10_000)
    for number, count in enumerate([b"", b"-5", b"?" * 100, b"0x10"]):
        (tmp_path / ".lock").write_bytes(count)
        for more in range(4):
            data = bytes([number, more]) * 1000
            cache.add({sha256(data): data})
        assert 0 < cache.usage().bytes <= 10_000


def assert_useless_but_harmless(
    store: Store, identity: str, cache: ReadCache, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = Store(store.backend, cache=cache).snapshot(identity)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert len(list(snapshot.stream())) == COUNT + 1
    assert len(said(caplog, "store")) == 1
    assert "left alone from here on" in caplog.text


@pytest.mark.parametrize("store_url", ["file"], indirect=True)
def test_a_folder_that_cannot_be_used_is_reported_once(
    store: Store, identity: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ReadCache(tmp_path / "file", LARGE)

    assert_useless_but_harmless(store, identity, cache, caplog)

    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("store_url", ["file"], indirect=True)
def test_a_full_disk_is_reported_once(
    store: Store, identity: str, small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 40_000))
    cache = ReadCache(small_disk / "cache", LARGE)

    assert_useless_but_harmless(store, identity, cache, caplog)

    assert all(sha256(path.read_bytes()) == path.name for path in entries(cache))


def test_clearing_removes_the_entries_and_nothing_else(tmp_path: Path) -> None:
    cache = ReadCache(tmp_path, LARGE)
    cache.add({sha256(b"a"): b"a", sha256(b"bc"): b"bc"})
    precious = [tmp_path / "thesis.tex", tmp_path / sha256(b"a")[:2] / "thesis.tex", tmp_path / "ab" / "x"]
    for path in precious:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")

    removed = cache.clear()

    assert (removed.entries, removed.bytes) == (2, 3)
    assert cache.usage().entries == 0
    assert {path.read_text() for path in precious} == {"precious"}
    assert ReadCache(tmp_path / "none", LARGE).clear().entries == 0
    cache.add({sha256(b"a"): b"a"})
    assert cache.usage().bytes == 1


def test_what_cannot_be_looked_into_is_said(tmp_path: Path) -> None:
    (tmp_path / "ab").write_text("no folder")

    with pytest.raises(StorageUnavailable, match="cannot use the read cache"):
        ReadCache(tmp_path, LARGE).usage()
