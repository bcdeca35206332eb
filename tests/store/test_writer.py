"""A writer checks and uploads packs while it fills the next, in bounded memory, and reports errors once."""

from __future__ import annotations

import base64
import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from store import Store
from store.backend import Body, HashedBytes
from store.backend.s3 import S3Backend
from store.errors import InputError, IntegrityError, Unreachable
from store.format import BUILD_PREFIX, PACK_PREFIX, pack_key, sha256
from store.writer import Writer
from tests.store.samples import memory

TARGET = 4096
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Whatever becomes of a writer, no thread survives it."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def writer_of(store: Store, *, renew: Callable[[], None] = lambda: None) -> Writer:
    return Writer(store.backend, "b", "unit", renew=renew, target_bytes=TARGET)


def add_packs(writer: Writer, numbers: range) -> None:
    """Add one pack's worth of elements for each number."""
    for number in numbers:
        writer.add(memory(number, size=TARGET))


def intercept_puts(store: Store, around: Callable[[str, Callable[[], None]], None]) -> None:
    """Let `around` decide what happens to every write of the store's backend."""
    put = store.backend.put

    def intercepted(key: str, body: Body) -> None:
        around(key, lambda: put(key, body))

    store.backend.put = intercepted  # type: ignore[method-assign]


def test_packs_are_filled_while_others_are_written_but_only_a_few_ahead(store: Store) -> None:
    sent, written = [], []
    fourth_sent = threading.Event()
    ahead = []

    def renew() -> None:
        sent.append(1)
        if len(sent) == 4:
            fourth_sent.set()

    def hold_back(key: str, write: Callable[[], None]) -> None:
        if key.startswith(PACK_PREFIX):
            assert fourth_sent.wait(LIMIT_S)  # which never came if packs were written one by one
            ahead.append(len(sent) - len(written))
            written.append(1)
        write()

    intercept_puts(store, hold_back)
    with writer_of(store, renew=renew) as writer:
        add_packs(writer, range(12))
        receipt = writer.finish()

    assert len(receipt.packs) == 12
    assert max(ahead) == 4  # three in flight, and one that waits for room


def test_the_part_is_written_after_all_packs_and_lists_the_elements_as_added(store: Store) -> None:
    order: list[str] = []

    def record(key: str, write: Callable[[], None]) -> None:
        write()
        order.append(key.partition("/")[0] + "/")

    intercept_puts(store, record)
    build = store.build("b", owner="test", target_bytes=TARGET)
    with build.writer("unit") as writer:
        add_packs(writer, range(7))
        receipt = writer.finish()

    assert order == [PACK_PREFIX] * 7 + [BUILD_PREFIX]
    assert [row.ref for row in build.rows(receipt)] == [memory(n, size=TARGET).ref for n in range(7)]
    assert receipt.bytes == 7 * TARGET


def test_packs_hold_nothing_of_those_whose_memory_they_use_again(store: Store) -> None:
    generator = random.Random(5)
    sizes = [generator.randrange(1, 3 * TARGET) for _ in range(60)]
    build = store.build("b", owner="test", target_bytes=TARGET)

    with build.writer("unit") as writer:
        refs = [writer.add(memory(number, size=size)) for number, size in enumerate(sizes)]
        build.commit([writer.finish()], message="packs of many sizes")

    assert store.verify(full=True).ok
    assert [len(store.read(ref)) for ref in refs] == sizes


def test_an_outage_is_reported_once_and_what_was_lost_is_written_again(store: Store) -> None:
    attempts, down = 0, True

    def unreliable(key: str, write: Callable[[], None]) -> None:
        nonlocal attempts
        attempts += 1
        if down:
            raise Unreachable("no answer")
        write()

    intercept_puts(store, unreliable)
    with writer_of(store) as writer:
        with pytest.raises(Unreachable, match="no answer"):
            add_packs(writer, range(8))
        refused = len(writer._versions)
        down = False
        add_packs(writer, range(8))
        receipt = writer.finish()

    assert refused == 4  # three packs were lost, one is full: the fifth element was not taken
    assert receipt.elements == 8
    assert {store.backend.info(pack_key(digest)).size for digest, _ in receipt.packs} == {  # type: ignore[union-attr]
        size for _, size in receipt.packs
    }


def test_finish_reports_an_outage_and_can_be_called_again(store: Store) -> None:
    failures = [Unreachable("one"), Unreachable("two")]
    lock = threading.Lock()

    def unreliable(key: str, write: Callable[[], None]) -> None:
        with lock:
            if failures:
                raise failures.pop()
        write()

    intercept_puts(store, unreliable)
    with writer_of(store) as writer:
        add_packs(writer, range(3))
        with pytest.raises(Unreachable):
            writer.finish()
        receipt = writer.finish()

    assert len(receipt.packs) == 3
    assert writer.finish() == receipt


def test_a_writer_that_is_left_early_writes_no_part_and_takes_nothing_more(store: Store) -> None:
    with writer_of(store) as writer:
        add_packs(writer, range(5))

    assert list(store.backend.list(BUILD_PREFIX)) == []
    for use in (lambda: writer.add(memory(1)), writer.finish):
        with pytest.raises(InputError, match="'unit' was left unfinished"):
            use()


def test_a_pack_that_changed_in_memory_is_not_uploaded(store: Store) -> None:
    with writer_of(store) as writer:
        writer.add(memory(1))
        writer._pack._data[-1] ^= 1
        with pytest.raises(IntegrityError, match="fails its checksum"):
            writer.finish()

    assert list(store.backend.list(PACK_PREFIX)) == []


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
def test_the_digest_of_a_pack_goes_to_the_server_without_being_computed_again(store: Store) -> None:
    sent: list[dict[str, Any]] = []
    assert isinstance(store.backend, S3Backend)
    store.backend._client.meta.events.register(
        "before-send.s3.PutObject", lambda request, **_: sent.append(dict(request.headers))
    )

    with writer_of(store) as writer:
        writer.add(memory(1))
        [(digest, _)] = writer.finish().packs

    headers = {name.lower(): value for name, value in sent[0].items()}
    checksum = base64.b64encode(bytes.fromhex(digest))
    assert headers["x-amz-checksum-sha256"] in (checksum, checksum.decode())
    assert headers["x-amz-content-sha256"] in (b"UNSIGNED-PAYLOAD", "UNSIGNED-PAYLOAD")
    assert "x-amz-checksum-sha256" in str(headers["authorization"])  # the signature covers the digest


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
def test_a_server_refuses_a_body_that_its_digest_does_not_describe(store: Store) -> None:
    body = HashedBytes(os.urandom(100))
    body.sha256 = sha256(b"something else")

    with pytest.raises(IntegrityError, match="damaged on their way"):
        store.backend.put("packs/aa/x", body)

    assert store.backend.info("packs/aa/x") is None


@pytest.mark.parametrize("store_url", ["file"], indirect=True)
def test_each_pack_is_flushed_to_disk_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (flushed.append(os.fstat(handle).st_mode), fsync(handle)))

    with writer_of(store) as writer:
        for number in range(100):
            writer.add(memory(number, size=400))
        receipt = writer.finish()

    files = [mode for mode in flushed if mode & 0o100000]
    assert len(files) == len(receipt.packs) + 1  # and the part
