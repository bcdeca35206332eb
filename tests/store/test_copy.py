"""A copied snapshot is the same snapshot; only what is missing travels, all of it checked on the way."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from store import Element, Snapshot, Store
from store.backend import open_backend
from store.errors import (
    ElementNotFound,
    InputError,
    IntegrityError,
    MissingRequirement,
    NotAStore,
    TagExists,
)
from store.format import pack_key
from store.gc import collect
from store.keys import write_key_pair
from store.transfer import Choice, copy_snapshot
from store.trust import sign_snapshot, verify_snapshot
from tests.seaweedfs import S3Server
from tests.store.clocks import Clock, ClockedBackend
from tests.store.killed_copy import WRITES
from tests.store.samples import BYTES, codec, memory

ROOT = Path(__file__).parents[2]
PACK_BYTES = 8_000
"""Small packs, so that a snapshot has several."""


def fill(store: Store, count: int = 40, *, first: int = 0) -> Snapshot:
    """Publish a codec and memories in packs of about nine, and pin them all."""
    [needed] = store.publish([codec()], message="codec")
    build = store.build(f"fill-{first}", owner="test", target_bytes=PACK_BYTES)
    with build.writer("unit") as writer:
        refs = [writer.add(memory(first + n, size=400, requires=(needed.version,))) for n in range(count)]
        build.commit([writer.finish()], message="fill")
    return store.pin([needed, *refs], message="pin")


def content(store: Store, snapshot: str) -> dict[str, tuple[str, bytes]]:
    return {row.name: (row.version, payload) for row, payload in store.snapshot(snapshot).stream()}


@pytest.fixture
def source(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path / 'source'}")


@pytest.fixture
def here(tmp_path: Path) -> Callable[[str], Store]:
    """Make further stores in folders."""
    return lambda name: Store.create(f"file:{tmp_path / name}")


def test_a_copy_is_the_same_snapshot_and_a_second_one_sends_nothing(source: Store, store: Store) -> None:
    snapshot = fill(source)

    report = copy_snapshot(source, snapshot, store, tag="v1")
    again = copy_snapshot(source, snapshot, store, tag="v1")

    assert report.snapshot == snapshot.id == store.tags()["v1"]
    assert content(store, snapshot.id) == content(source, snapshot.id)
    assert {row.pack for row in store.snapshot("v1").rows()} == {row.pack for row in snapshot.rows()}
    packs = len({row.pack for row in snapshot.rows()})
    assert (report.elements, report.new, report.packs_sent, report.packs_made) == (41, 41, packs, 0)
    assert (again.new, again.packs_sent, again.packs_found, again.bytes) == (0, 0, 0, 0)
    assert [commit.action for commit in store.log()] == ["publish", "pin"]
    assert store.verify(full=True).findings == ()


@pytest.mark.s3
@pytest.mark.parametrize("route", ["s3 to folder", "s3 to s3"])
def test_a_bucket_is_copied_from(
    route: str, s3_server: S3Server, here: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    source = Store.create(s3_server.url())
    destination = here("copy") if route.endswith("folder") else Store.create(s3_server.url())
    snapshot = fill(source)

    copy_snapshot(source, snapshot, destination)

    assert content(destination, snapshot.id) == content(source, snapshot.id)
    assert destination.verify(full=True).findings == ()


def test_only_packs_that_are_missing_are_sent(source: Store, here: Callable[[str], Store]) -> None:
    destination = here("copy")
    first, both = fill(source), fill(source, first=100)
    union = source.pin({row.ref for row in [*first.rows(), *both.rows()]}, message="both")
    copy_snapshot(source, first, destination)
    has = {row.pack for row in first.rows()}
    seen: list[tuple[int, int]] = []

    report = copy_snapshot(
        source, union, destination, progress=lambda done, total, **figures: seen.append((done, total))
    )

    assert report.packs_sent == len({row.pack for row in union.rows()} - has)
    assert report.new == 40
    assert seen[-1] == (report.bytes, report.bytes)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_pack_that_lies_there_already_is_used_if_it_is_intact(
    source: Store, here: Callable[[str], Store], tmp_path: Path
) -> None:
    destination = here("copy")
    snapshot = fill(source)
    packs = sorted({row.pack for row in snapshot.rows()})
    for pack in packs:
        data = bytearray(source.backend.read(pack_key(pack)))
        data[-200] ^= pack == packs[0]
        destination.backend.put(pack_key(pack), data)

    report = copy_snapshot(source, snapshot, destination)

    assert (report.packs_found, report.packs_sent) == (len(packs) - 1, 1)
    assert destination.verify(full=True).findings == ()


def test_a_choice_is_closed_over_requirements_or_refused(source: Store, store: Store) -> None:
    snapshot = fill(source)
    some = Choice(kinds=("memory",), names=("memory/doc/0000?", "memory/doc/00011"))

    report = copy_snapshot(source, snapshot, store, choice=some)

    names = [row.name for row in store.snapshot(report.snapshot).rows()]
    assert names == ["codec/c", *(f"memory/doc/{n:05d}" for n in [*range(10), 11])]
    assert report.source == snapshot.id != report.snapshot
    with pytest.raises(MissingRequirement, match=r"memory/doc/00000 requires codec/c@.* was not chosen"):
        copy_snapshot(source, snapshot, store, choice=Choice(names=some.names, requirements=False))
    alone = Choice(kinds=("codec",), requirements=False)
    assert copy_snapshot(source, snapshot, store, choice=alone).elements == 1


@pytest.mark.parametrize(
    ("choice", "error", "phrase"),
    [
        (Choice(kinds=("memry",)), InputError, "'memry' is no kind"),
        (Choice(kinds=("skill",)), ElementNotFound, "no element of kind skill"),
        (Choice(names=("memory/x*",)), ElementNotFound, r"no element called memory/x\*"),
        (Choice(kinds=("codec",), names=("memory/*",)), ElementNotFound, "no element of kind codec"),
    ],
)
def test_a_choice_of_nothing_is_refused(
    source: Store, here: Callable[[str], Store], choice: Choice, error: type[Exception], phrase: str
) -> None:
    destination = here("copy")
    with pytest.raises(error, match=phrase):
        copy_snapshot(source, fill(source, 3), destination, choice=choice)
    assert list(destination.log()) == []


def test_a_pack_travels_whole_if_at_least_half_of_it_is_wanted(
    source: Store, here: Callable[[str], Store]
) -> None:
    destination = here("copy")
    snapshot = fill(source, 9)
    [pack] = {row.pack for row in snapshot.rows("memory")}

    few = copy_snapshot(source, snapshot, destination, choice=Choice(names=("memory/doc/0000[0-3]",)))
    most = copy_snapshot(source, snapshot, destination, choice=Choice(names=("memory/doc/0000[1-8]",)))

    assert (few.packs_made, few.packs_sent) == (1, 1)  # the codec has a pack of its own
    assert (most.packs_made, most.packs_sent, most.new) == (0, 1, 5)
    rows = {row.name: row.pack for row in destination.catalog().rows("memory")}
    assert {rows[f"memory/doc/0000{n}"] for n in range(4, 9)} == {pack}
    assert pack not in {rows[f"memory/doc/0000{n}"] for n in range(4)}


def test_a_new_pack_depends_on_its_elements_only(source: Store, here: Callable[[str], Store]) -> None:
    other = here("other")
    [needed] = other.publish([codec()], message="codec")
    build = other.build("x", owner="test", target_bytes=6_000)
    with build.writer("unit") as writer:
        for number in reversed(range(40)):
            writer.add(memory(number, size=400, requires=(needed.version,)))
        build.commit([writer.finish()], message="in another order, in other packs")
    pinned = other.pin([row.ref for row in other.catalog().rows()], message="pin")
    every_eighth = Choice(names=tuple(f"memory/doc/{n:05d}" for n in range(0, 40, 8)))
    made = []
    for name, store, snapshot in (("one", source, fill(source)), ("two", other, pinned)):
        copy = here(name)
        report = copy_snapshot(store, snapshot, copy, choice=every_eighth)
        made.append({row.pack for row in copy.snapshot(report.snapshot).rows("memory")})

    assert made[0] == made[1]


def test_signatures_travel_with_a_whole_snapshot(
    source: Store, here: Callable[[str], Store], tmp_path: Path
) -> None:
    from store.keys import read_private_key

    snapshot = fill(source, 3)
    _, public = write_key_pair(tmp_path / "key")
    sign_snapshot(source, snapshot, read_private_key(tmp_path / "key", lambda: b""))
    whole, part = here("whole"), here("part")

    assert copy_snapshot(source, snapshot, whole).signatures == 1
    assert copy_snapshot(source, snapshot, part, choice=Choice(kinds=("codec",))).signatures == 0
    assert verify_snapshot(whole, whole.snapshot(snapshot.id), keys=[public]).ok


def test_a_tag_that_names_another_snapshot_stops_the_copy_before_it_begins(
    source: Store, here: Callable[[str], Store]
) -> None:
    destination = here("copy")
    destination.tag("v1", fill(destination, 1).id)
    before = sorted(item.key for item in destination.backend.list(""))

    with pytest.raises(TagExists, match="v1"):
        copy_snapshot(source, fill(source, 5), destination, tag="v1")

    assert sorted(item.key for item in destination.backend.list("")) == before


def test_damage_anywhere_in_a_source_pack_stops_the_copy(source: Store, tmp_path: Path) -> None:
    snapshot = fill(source, 9)
    generator = random.Random(5)
    [key] = {pack_key(row.pack) for row in snapshot.rows("memory")}
    path = tmp_path / "source" / key
    whole = path.read_bytes()
    for number in range(8):
        destination = Store.create(str(tmp_path / f"copy-{number}"))
        damaged = bytearray(whole)
        damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)

        with pytest.raises(IntegrityError, match=key):
            copy_snapshot(source, snapshot, destination)

        assert list(destination.log()) == []
        path.write_bytes(whole)
        assert copy_snapshot(source, snapshot, destination).snapshot == snapshot.id


def test_a_missing_source_pack_is_named(source: Store, here: Callable[[str], Store]) -> None:
    snapshot = fill(source, 9)
    pack = snapshot.rows("codec")[0].pack
    source.backend.delete(pack_key(pack))

    with pytest.raises(IntegrityError, match=f"{pack}, which holds codec/c, is missing"):
        copy_snapshot(source, snapshot, here("copy"))


def test_large_payloads_and_tiny_ones_travel(source: Store, here: Callable[[str], Store]) -> None:
    large = [Element("skill", f"s{n}", bytes([n]) * 300_000, media=BYTES) for n in range(4)]
    tiny = [Element("skill", f"t{n}", b"", media=BYTES) for n in range(300)]
    snapshot = source.pin(source.publish([*large, *tiny], message="m"), message="pin")
    destination = here("copy")

    copy_snapshot(source, snapshot, destination)
    few = copy_snapshot(source, snapshot, here("few"), choice=Choice(names=("skill/s1", "skill/t1?")))

    assert content(destination, snapshot.id) == content(source, snapshot.id)
    assert (few.elements, few.packs_made) == (11, 1)


def test_a_copy_takes_back_what_garbage_collection_condemned(
    source: Store, here: Callable[[str], Store]
) -> None:
    snapshot = fill(source)
    clock = Clock()
    backend = ClockedBackend(here("copy").backend, clock)
    copy_snapshot(source, snapshot, Store(backend))
    clock.forward(backend, days=40)
    assert collect(Store(backend), apply=True).condemned.packs == 6

    again = copy_snapshot(source, snapshot, Store(backend))

    assert (again.new, again.packs_found, again.bytes) == (41, 6, 0)
    clock.forward(backend, days=8)
    assert collect(Store(backend), apply=True).collected.packs == 0
    assert content(Store(backend), snapshot.id) == content(source, snapshot.id)


def test_two_copies_at_once_end_in_one_snapshot(source: Store, here: Callable[[str], Store]) -> None:
    snapshot = fill(source)
    destination = here("copy")

    def copy(_: int) -> str:
        return copy_snapshot(source, snapshot, Store.open(destination.url), tag="v1").snapshot

    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(copy, range(3))) == {snapshot.id}

    assert [commit.action for commit in destination.log()] == ["publish", "pin"]
    assert destination.verify(full=True).findings == ()


def run_copy(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.store.killed_copy", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("at", [0, 2, 7, WRITES - 4, WRITES - 1])
def test_a_killed_copy_continues_where_it_stopped(source: Store, tmp_path: Path, at: int) -> None:
    snapshot = fill(source)
    url = f"file:{tmp_path / 'copy'}"

    dead = run_copy(source.url, url, snapshot.id, at)

    assert dead.returncode == -signal.SIGKILL, dead.stderr
    try:
        found = Store.open(url)
    except NotAStore:
        assert at == 0
        found = Store.create(url)
    assert len(found.catalog()) in (0, 41)
    there = {item.key for item in found.backend.list("packs/")}
    report = copy_snapshot(source, snapshot, found)
    assert (report.snapshot, content(found, snapshot.id)) == (snapshot.id, content(source, snapshot.id))
    if report.new:
        assert report.packs_sent == len({row.pack for row in snapshot.rows()}) - len(there)
        assert report.packs_found == len(there)
    assert found.verify(full=True).findings == ()


def test_a_copy_makes_as_many_writes_as_the_kill_points_assume(source: Store, tmp_path: Path) -> None:
    done = run_copy(source.url, f"file:{tmp_path / 'copy'}", fill(source).id, -1)
    assert done.stdout.split() == [source.snapshot(fill(source).id).id, str(WRITES)], done.stderr


def test_what_an_old_format_holds_can_be_copied(tmp_path: Path, here: Callable[[str], Store]) -> None:
    shutil.unpack_archive(
        Path(__file__).parents[1] / "data" / "store_format_1.tar.gz", tmp_path, filter="data"
    )
    old = Store.open(str(tmp_path / "store"))
    destination = here("copy")

    for identity in old.tags().values():
        copy_snapshot(old, old.snapshot(identity), destination)
        assert content(destination, identity) == content(old, identity)
    assert open_backend(destination.url).info("format.json") is not None
