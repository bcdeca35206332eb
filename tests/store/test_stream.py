"""Streams read ahead, keep order and bounds, stop at the first error, and leave no thread behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from store import Row, Store
from store.errors import IntegrityError, Unreachable
from store.format import PACK_PREFIX, pack_key
from store.prefetch import prefetched
from tests.store.samples import codec, memory

COUNT = 60
SIZE = 3000


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Whatever a test does with a stream, no thread survives it."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.fixture
def pinned(store: Store) -> tuple[Store, str]:
    """Return a store with a snapshot of 61 elements in many small packs."""
    build = store.build("b", owner="test", target_bytes=16_384)
    with build.writer("unit") as writer:
        refs = [writer.add(codec())]
        refs += [writer.add(memory(n, size=SIZE, requires=(codec().version,))) for n in range(COUNT)]
        build.commit([writer.finish()], message="many packs")
    return store, store.pin(refs, message="all").id


def watch_packs(store: Store) -> list[tuple[str, int]]:
    """Record the pack and length of every read of a pack from now on."""
    read, seen = store.backend.read, []

    def watched(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key.startswith(PACK_PREFIX):
            seen.append((key, length or 0))
        return read(key, offset=offset, length=length)

    store.backend.read = watched  # type: ignore[method-assign]
    return seen


def test_a_stream_yields_everything_once_in_pack_order_with_few_requests(pinned: tuple[Store, str]) -> None:
    store, identity = pinned
    snapshot = store.snapshot(identity)
    requests = watch_packs(store)

    streamed = list(snapshot.stream())

    places = [(row.pack, row.offset) for row, _ in streamed]
    assert places == sorted(places)
    assert len(requests) == len(snapshot.packs()) > 10
    payloads = {memory(n).full_name: memory(n, size=SIZE).payload for n in range(COUNT)}
    assert {row.name: payload for row, payload in streamed if row.kind == "memory"} == payloads
    assert sorted((row for row, _ in streamed), key=lambda row: row.name) == snapshot.rows()


def test_a_large_snapshot_is_streamed_in_several_passes_over_its_rows(
    pinned: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, identity = pinned
    whole = list(store.snapshot(identity).stream())

    monkeypatch.setattr("store.stream._TABLE_BYTES", 8_000)

    assert list(store.snapshot(identity).stream()) == whole


def test_a_selection_is_streamed_without_what_lies_between(pinned: tuple[Store, str]) -> None:
    store, identity = pinned
    snapshot = store.snapshot(identity)
    chosen = [row for row in snapshot.rows("memory") if row.name.endswith("7")]
    requests = watch_packs(store)

    streamed = list(snapshot.stream(reversed(chosen)))

    assert {row.name for row, _ in streamed} == {row.name for row in chosen}
    assert {key for key, _ in requests} == {pack_key(row.pack) for row in chosen}
    assert sum(length for _, length in requests) < 16_384 * len(chosen)


def test_a_stream_stops_at_the_first_damaged_payload_and_names_it(pinned: tuple[Store, str]) -> None:
    store, identity = pinned
    snapshot = store.snapshot(identity)
    ordered = [row for row, _ in snapshot.stream()]
    victim = ordered[30]
    data = bytearray(store.backend.read(pack_key(victim.pack)))
    data[victim.offset] ^= 1
    store.backend.put(pack_key(victim.pack), data)
    seen: list[Row] = []

    with pytest.raises(IntegrityError, match=victim.name):
        seen.extend(row for row, _ in snapshot.stream())

    first = next(row for row in ordered if row.pack == victim.pack)
    assert seen == ordered[: ordered.index(first)]


def test_a_stream_that_is_dropped_half_way_reads_no_further(pinned: tuple[Store, str]) -> None:
    store, identity = pinned
    snapshot = store.snapshot(identity)
    stream = snapshot.stream()

    first = next(stream)
    stream.close()
    requests = watch_packs(store)

    assert first[1] == store.read(first[0])
    assert len(requests) == 1


def test_a_storage_that_stops_answering_ends_the_stream_with_its_error(pinned: tuple[Store, str]) -> None:
    store, identity = pinned
    snapshot = store.snapshot(identity)
    read, left = store.backend.read, iter(range(3))

    def failing(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key.startswith(PACK_PREFIX) and next(left, None) is None:
            raise Unreachable("no answer")
        return read(key, offset=offset, length=length)

    store.backend.read = failing  # type: ignore[method-assign]

    with pytest.raises(Unreachable):
        list(snapshot.stream())


def test_results_come_in_order_and_no_more_is_taken_than_the_limit_allows() -> None:
    taken: list[int] = []
    weights = [3, 1, 1, 20, 1, 4, 4, 4]
    done = 0

    def source() -> Iterator[int]:
        for number in range(len(weights)):
            taken.append(number)
            yield number

    results = prefetched(lambda number: number * 10, source(), threads=4, weigh=weights.__getitem__, limit=5)
    for number, result in enumerate(results):
        done += 1
        assert result == number * 10
        ahead = [weights[n] for n in taken[done - 1 : -1]]  # the last one taken waits for room
        assert sum(ahead) <= 5 or len(ahead) == 1

    assert done == len(weights)


def test_an_error_in_the_middle_comes_in_its_place_and_ends_everything() -> None:
    def work(number: int) -> int:
        if number == 5:
            raise Unreachable("five")
        return number

    seen = []
    with pytest.raises(Unreachable, match="five"):
        seen.extend(prefetched(work, range(1000), threads=4, weigh=lambda _: 1, limit=8))

    assert seen == [0, 1, 2, 3, 4]


def test_an_interrupt_ends_the_threads() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return number

    with pytest.raises(KeyboardInterrupt):
        list(prefetched(work, range(1_000_000), threads=2, weigh=lambda _: 1, limit=4))

    assert len(begun) < 1_000_000
