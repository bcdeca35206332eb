"""Where bits are flipped, no read ever returns a wrong byte; `test_verify.py` finds them all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from store import Ref, Store
from store.errors import IntegrityError
from tests.store.samples import codec, memory

COUNT = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with packs, indexes, a merged index, a checkpoint, a snapshot, a tag and a head."""
    root = tmp_path_factory.mktemp("corruption") / "store"
    store = Store.create(str(root))
    refs = store.publish(
        [codec(), *(memory(n, requires=(codec().version,)) for n in range(COUNT))], message="all"
    )
    for number in range(64):
        store.publish([memory(1000 + number, size=16)], message=str(number))
    snapshot = store.pin(refs, message="pin")
    store.tag("v1", snapshot.id)
    store.move_head("main", snapshot.id, expect=None)
    return root


def files(root: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in root.glob(pattern) if path.is_file())
    assert found, pattern
    return found


def flipped(data: bytes, generator: random.Random) -> bytes:
    damaged = bytearray(data)
    position = generator.randrange(len(damaged) * 8)
    damaged[position // 8] ^= 1 << position % 8
    return bytes(damaged)


def read_everything(root: Path) -> dict[Ref, bytes]:
    store = Store.open(str(root))
    snapshot = store.snapshot("v1")
    read = {row.ref: data for row, data in snapshot.stream()}
    for row in store.catalog().rows():
        read[row.ref] = store.read(row)
    assert store.head("main") == snapshot.id
    return read


@pytest.mark.parametrize("pattern", ["snapshots/*", "log/0*6?.json", "refs/*/*", "format.json", "packs/*/*"])
def test_reads_return_right_bytes_or_an_error(folder: Path, pattern: str) -> None:
    right = read_everything(folder)
    generator = random.Random(2)
    largest = sorted(files(folder, pattern), key=lambda path: path.stat().st_size)[-8:]
    errors = []
    for path in largest * 4:
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, generator))
        try:
            # A flip may hit bytes that reading does not need, such as a frame's head: the rest is right then.
            assert read_everything(folder) == right
        except IntegrityError as error:
            errors.append((path, str(error)))
        path.write_bytes(whole)

    assert errors
    assert all(path.name[:12] in text for path, text in errors)


def test_damage_in_what_is_derived_costs_time_only(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    right = read_everything(folder)
    generator = random.Random(3)
    named = {digest for commit in Store.open(str(folder)).log() for digest in commit.indexes}
    derived = [path for path in files(folder, "index/*") if path.stem not in named]
    derived += [*files(folder, "log/checkpoint-*"), *files(folder, "log/history-*")]
    for path in derived:
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, generator))
        assert read_everything(folder) == right
        assert len(list(Store.open(str(folder)).log())) == 66
        path.write_bytes(whole)
    assert "without its newest checkpoint" in caplog.text
    assert "read entry by entry" in caplog.text


def test_a_damaged_index_that_nothing_stands_in_for_is_named(folder: Path) -> None:
    generator = random.Random(4)
    checkpoints = {path: path.read_bytes() for path in files(folder, "log/checkpoint-*")}
    for path in checkpoints:
        path.unlink()
    for commit in list(Store.open(str(folder)).log())[:8]:
        path = folder / "index" / f"{commit.indexes[0]}.parquet"
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, generator))
        with pytest.raises(IntegrityError, match=path.name[:12]):
            read_everything(folder)
        path.write_bytes(whole)
    for path, data in checkpoints.items():
        path.write_bytes(data)


def test_a_damaged_payload_is_named_with_its_element_and_snapshots(folder: Path, tmp_path: Path) -> None:
    store = Store.open(str(folder))
    row = store.snapshot("v1").get("memory/doc/00007")
    path = folder / "packs" / row.pack[:2] / row.pack
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[row.offset + 5] ^= 1
    path.write_bytes(damaged)
    try:
        with pytest.raises(IntegrityError, match=f"packs/.*{row.pack}.*memory/doc/00007@{row.version[:12]}"):
            store.read(row)
        with pytest.raises(IntegrityError, match="memory/doc/00007"):
            list(store.snapshot("v1").stream())
        assert store.read(store.snapshot("v1").get("memory/doc/00008")) == memory(8).payload
        [finding] = store.verify(full=True).findings
        assert store.verify().ok  # without `full` only sizes are looked at
    finally:
        path.write_bytes(whole)

    assert finding.elements == (str(row.ref),)
    assert finding.snapshots == (store.snapshot("v1").id,)
