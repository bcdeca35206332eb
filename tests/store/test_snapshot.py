"""Large snapshots open and answer with few requests, are scanned in pieces, and prove what they can."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import Row, Store
from store.backend import Backend, open_backend
from store.errors import ElementNotFound, IntegrityError
from store.format import seal, sha256, snapshot_key, snapshot_rows_key, unseal
from store.rows import rows_of
from store.snapshot import encode_snapshot
from store.snapshot_head import group_rows
from tests.store.requests import Requests
from tests.store.samples import codec, memory

COUNT = 52_809


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def synthetic_row(number: int) -> Row:
    """Return a row like those of real elements whose pack does not exist."""
    return Row(
        name=f"memory/doc/{number:05d}",
        kind="memory",
        version=digest_of(f"version {number}"),
        digest=digest_of(f"payload {number}"),
        pack=digest_of(f"pack {number // 512}"),
        offset=8 + number % 512 * 66_000,
        length=65_536,
        media="application/octet-stream",
        requires=(digest_of("codec"),),
        provenance={"recipe": digest_of(f"recipe {number}"), "source": f"s{number}"},
        facts={"token_recall": 1.0, "steps": number},
        commit=1,
    )


Encoded = tuple[bytes, bytes]


@pytest.fixture(scope="module")
def encode() -> Callable[[list[Row]], Encoded]:
    """Return a function that encodes 52,809 rows, some of them given; it does so once for all storages."""
    done: list[Encoded] = []

    def encode(real: list[Row]) -> Encoded:
        if not done:
            synthetic = [synthetic_row(number) for number in range(1000, 1000 + COUNT - len(real))]
            done.append(encode_snapshot([*real, *synthetic]))
        return done[0]

    return encode


@pytest.fixture
def large(store: Store, encode: Callable[[list[Row]], Encoded]) -> str:
    """Put a snapshot of 52,809 elements, five of them real, into the store and return its id."""
    store.publish([memory(number) for number in range(5)], message="real")
    return put(store.backend, encode(store.catalog().rows()))


def put(backend: Backend, snapshot: Encoded) -> str:
    record = unseal(snapshot[0], "head")
    backend.put(snapshot_rows_key(record["rows"]), snapshot[1])
    backend.put(snapshot_key(record["id"]), snapshot[0])
    return str(record["id"])


def test_opening_a_store_and_reading_one_element_of_52_809_takes_four_requests(
    store_url: str, large: str
) -> None:
    backend = open_backend(store_url)
    requests = Requests(backend)

    snapshot = Store(backend).snapshot(large)
    payload = snapshot.read("memory/doc/00003")

    assert payload == memory(3).payload
    assert snapshot.count == COUNT
    assert requests.count == 4
    assert requests.bytes < 300_000  # the rows are 8 MB
    snapshot.read("memory/doc/00004")
    assert requests.count == 5


def test_groups_grow_with_the_snapshot_so_that_its_head_stays_small() -> None:
    sizes = {count: group_rows(count) for count in (1, 1000, COUNT, 1_000_000, 10_000_000)}

    assert sizes[1] == sizes[COUNT] == 1024
    assert all(count / size < 1000 for count, size in sizes.items())
    assert max(sizes.values()) < 16_384


@pytest.fixture
def medium(tmp_path: Path) -> tuple[Store, str]:
    """Return a store in a folder with a snapshot of three row groups, whose first five elements are real."""
    store = Store.create(str(tmp_path / "medium"))
    store.publish([memory(number) for number in range(5)], message="real")
    rows = [*store.catalog().rows(), *map(synthetic_row, range(1000, 3995))]
    return store, put(store.backend, encode_snapshot(rows))


def test_a_scan_yields_the_asked_columns_of_all_rows_in_small_tables(medium: tuple[Store, str]) -> None:
    store, identity = medium
    snapshot = store.snapshot(identity)

    tables = list(snapshot.scan(["name", "length"]))

    assert {tuple(table.column_names) for table in tables} == {("name", "length")}
    names = [name for table in tables for name in table["name"].to_pylist()]
    assert names == sorted(set(names))
    assert [len(table) for table in tables] == [1024, 1024, 952]
    assert len(snapshot.packs()) == 8
    assert [row for table in snapshot.scan() for row in rows_of(table)] == snapshot.rows()


def test_a_set_that_is_not_the_one_of_the_id_shows_when_all_of_it_was_read(
    medium: tuple[Store, str],
) -> None:
    store, identity = medium
    head = unseal(store.backend.read(snapshot_key(identity)), "head")
    other = digest_of("another set")
    forged = {name: value for name, value in head.items() if name != "seal"} | {"id": other}
    store.backend.put(snapshot_key(other), seal(forged))
    snapshot = store.snapshot(other)

    assert snapshot.read("memory/doc/00003") == memory(3).payload  # which is what that version stands for
    for read_all in (snapshot.rows, snapshot.packs, lambda: next(iter(snapshot.stream()))):
        with pytest.raises(IntegrityError, match="not the set that its id names"):
            read_all()


@pytest.fixture
def small(tmp_path: Path) -> tuple[Store, str]:
    """Return a store in a folder with a snapshot of six elements."""
    store = Store.create(str(tmp_path / "store"))
    elements = [codec(), *(memory(number, requires=(codec().version,)) for number in range(5))]
    return store, store.pin(store.publish(elements, message="six"), message="six").id


def reseal(store: Store, identity: str, **changes: Any) -> None:
    """Write the head of a snapshot with other values and a seal that fits them; None removes one."""
    record = unseal(store.backend.read(snapshot_key(identity)), "head") | changes
    kept = {name: value for name, value in record.items() if value is not None}
    store.backend.put(snapshot_key(identity), seal(kept))


def test_a_head_without_the_footer_is_read_with_one_request_more(small: tuple[Store, str]) -> None:
    store, identity = small
    reseal(store, identity, footer_zlib=None)
    requests = Requests(store.backend)

    assert store.snapshot(identity).read("memory/doc/00002") == memory(2).payload
    assert requests.count == 4  # head, footer, row group, payload


@pytest.mark.parametrize(
    "changes",
    [
        {"footer_zlib": base64.b64encode(zlib.compress(bytes(2**28))).decode()},
        {"footer_zlib": base64.b64encode(b"no footer").decode()},
        {"footer_zlib": "?"},
        {"footer_zlib": 7},
        {"groups": [["a", "b", 4]]},
        {"groups": [["a", "b", 4, 10, "x"]]},
        {"groups": [["memory/b", "memory/a", 4, 10, "0" * 64]]},
        {"groups": [[1, 2, 4, 10, "0" * 64]]},
        {"groups": [{}]},
        {"groups": {}},
        {"footer": [4, 10]},
        {"footer": [4, 2**40, "0" * 64]},
        {"footer": [-1, 10, "0" * 64]},
        {"rows": "../../etc/passwd"},
        {"count": -1},
        {"count": 7},
        {"kinds": {"memory": "6"}},
        {"bytes": None},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_sealed_head_that_no_store_wrote_is_refused(small: tuple[Store, str], changes: Any) -> None:
    store, identity = small
    reseal(store, identity, **changes)

    with pytest.raises(IntegrityError, match=identity[:12]):
        store.snapshot(identity)


def test_a_head_that_gives_a_name_another_version_is_refused_where_it_can_be_noticed(
    small: tuple[Store, str],
) -> None:
    store, identity = small
    [old] = store.publish([memory(2, size=64)], message="not pinned")
    row = store.catalog().get(old.version)
    assert row is not None
    rows = [row if held.name == row.name else held for held in store.snapshot(identity).rows()]
    head, table = encode_snapshot(rows)
    record = unseal(head, "head") | {"id": identity}
    store.backend.put(snapshot_rows_key(sha256(table)), table)
    store.backend.put(snapshot_key(identity), seal(record))

    with pytest.raises(IntegrityError, match="not the set that its id names"):
        store.snapshot(identity).read(row.name)  # one row group, so that all rows are known


def test_many_names_are_read_in_pack_order_and_a_missing_one_is_named(small: tuple[Store, str]) -> None:
    store, identity = small
    snapshot = store.snapshot(identity)
    names = ["memory/doc/00004", "codec/c", "memory/doc/00001", "memory/doc/00004"]

    read = {row.name: payload for row, payload in snapshot.read_many(names)}

    assert read == {name: snapshot.read(name) for name in names}
    assert list(snapshot.read_many([])) == []
    with pytest.raises(ElementNotFound, match="memory/doc/00009"):
        snapshot.read_many([*names, "memory/doc/00009"])
    with pytest.raises(ElementNotFound, match="'a'"):
        snapshot.read_many(["a"])
