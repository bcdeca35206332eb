"""What a store promises, on every kind of storage."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from store import Element, Ref, Store, fingerprint
from store.errors import (
    ElementNotFound,
    HeadMoved,
    InputError,
    InvalidPayload,
    MissingRequirement,
    SnapshotNotFound,
    StoreExists,
    TagExists,
)
from tests.store.samples import BYTES, codec, memory, tensors

PUBLISH_IN_ANOTHER_PROCESS = """
import sys
from store import Store
from tests.store.samples import codec, memory
store = Store.open_or_create(sys.argv[1])
refs = store.publish([codec(), *(memory(n, requires=(codec().version,)) for n in range(20))], message="other")
print(store.pin(refs, message="other").id)
"""


def publish_twenty(store: Store) -> list[Ref]:
    elements = [codec(), *(memory(number, requires=(codec().version,)) for number in range(20))]
    return store.publish(elements, message="twenty")


def test_published_elements_are_read_back_by_reference_and_by_row(store: Store) -> None:
    [ref] = store.publish([memory(1)], message="one")

    assert store.read(ref) == memory(1).payload
    row = store.catalog().get(ref.version)
    assert row is not None
    assert store.read(row) == memory(1).payload
    assert (row.ref, row.kind, row.commit, row.facts["steps"]) == (ref, "memory", 1, 1)


def test_rows_describe_the_largest_tensor(store: Store) -> None:
    store.publish([Element("core", "c", tensors((3,), (5, 7)))], message="core")

    row = store.catalog().latest("core/c")

    assert row is not None
    assert (row.dtype, row.shape) == ("F32", (5, 7))


def test_a_payload_that_is_not_safetensors_is_refused_and_nothing_is_visible(store: Store) -> None:
    with pytest.raises(InvalidPayload, match="core/c"):
        store.publish([Element("core", "c", b"not tensors")], message="bad")

    assert list(store.log()) == []


def test_publishing_again_is_a_no_op(store: Store) -> None:
    first = publish_twenty(store)

    again = publish_twenty(store)

    assert again == first
    assert len(list(store.log())) == 1


def test_only_new_elements_are_added(store: Store) -> None:
    store.publish([memory(1), memory(2)], message="two")
    store.publish([memory(2), memory(3), memory(3)], message="one more")

    commits = list(store.log())

    assert [commit.elements for commit in commits] == [2, 1]
    assert [row.commit for row in store.catalog().rows()] == [1, 1, 2]


def test_facts_do_not_change_the_version_and_the_first_ones_stay(store: Store) -> None:
    one = Element("skill", "s", b"x", media=BYTES, facts={"loss": 0.5})
    two = Element("skill", "s", b"x", media=BYTES, facts={"loss": 0.4})

    assert one.version == two.version
    store.publish([one], message="first")
    store.publish([two], message="second")

    row = store.catalog().latest("skill/s")
    assert row is not None
    assert row.facts == {"loss": 0.5}


def test_equal_inputs_have_equal_ids_in_another_process_and_on_other_storage(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    snapshot = store.pin(publish_twenty(store), message="pin")
    other = tmp_path_factory.mktemp("other") / "store"

    printed = subprocess.run(
        [sys.executable, "-c", PUBLISH_IN_ANOTHER_PROCESS, str(other)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed.strip() == snapshot.id


def test_the_catalog_finds_by_recipe_name_and_version(store: Store) -> None:
    recipe = fingerprint("skill.make/1", params={"a": 1}, inputs=["x"])
    old = Element("skill", "s", b"old", media=BYTES, provenance={"recipe": recipe})
    new = Element("skill", "s", b"new", media=BYTES, provenance={"recipe": recipe, "take": 2})
    store.publish([old], message="old")
    store.publish([new], message="new")
    catalog = store.catalog()

    first, latest = catalog.find(recipe), catalog.latest("skill/s")

    assert first is not None
    assert first.version == old.version
    assert latest is not None
    assert latest.version == new.version
    assert [row.version for row in catalog.find_all(recipe)] == [old.version, new.version]
    assert catalog.find(recipe, name="skill/s") == first
    assert catalog.find(recipe, name="skill/t") is None
    assert catalog.find("00" * 32) is None
    assert catalog.find("") is None
    assert catalog.latest("skill/none") is None
    assert catalog.rows("codec") == []


def test_a_catalog_sees_what_another_process_committed(store: Store, store_url: str) -> None:
    catalog = store.catalog()
    [ref] = Store.open(store_url).publish([memory(1)], message="elsewhere")

    assert ref.version not in catalog
    assert ref.version in store.catalog()
    assert store.read(ref) == memory(1).payload


def test_reading_what_is_not_there_says_so(store: Store) -> None:
    with pytest.raises(ElementNotFound, match="memory/doc/00001"):
        store.read(memory(1).ref)


def test_a_build_is_invisible_until_its_commit(store: Store) -> None:
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        ref = writer.add(memory(1))
        receipt = writer.finish(notes={"rejected": ["x"]})

    assert ref.version not in store.catalog()
    commit = build.commit([receipt], message="now", run={"host": "h"})

    assert ref.version in store.catalog()
    assert (commit.sequence, commit.build, commit.elements, commit.run) == (1, "b", 1, {"host": "h"})


def test_a_build_is_resumed_by_name_with_the_units_it_has(store: Store, store_url: str) -> None:
    build = store.build("b", owner="test")
    for unit in ("a/0", "a/1"):
        with build.writer(unit) as writer:
            writer.add(memory(len(unit)))
            writer.finish(notes={"unit": unit})
    with build.writer("a/2") as writer:
        writer.add(memory(9))  # killed before finish

    receipts = Store.open(store_url).build("b", owner="again").receipts()

    assert sorted(receipts) == ["a/0", "a/1"]
    assert receipts["a/1"].notes == {"unit": "a/1"}
    assert receipts["a/1"] == type(receipts["a/1"]).from_dict(receipts["a/1"].to_dict())


def test_a_unit_whose_pack_is_gone_is_not_resumed(store: Store) -> None:
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(1))
        receipt = writer.finish()
    [(pack, _)] = receipt.packs
    store.backend.delete(f"packs/{pack[:2]}/{pack}")

    assert build.receipts() == {}


def test_committing_twice_returns_the_first_commit(store: Store, store_url: str) -> None:
    build = store.build("b", owner="test")
    receipts = []
    for number in range(3):
        with build.writer(f"u{number}") as writer:
            writer.add(memory(number))
            writer.add(memory(7))
            receipts.append(writer.finish())
    first = build.commit(receipts, message="first")
    store.publish([memory(100)], message="in between")

    again = Store.open(store_url).build("b", owner="x").commit(reversed(receipts), message="again")

    assert again == first
    assert first.elements == 4
    assert len(list(store.log())) == 2


def test_a_build_with_nothing_new_commits_nothing(store: Store) -> None:
    store.publish([memory(1)], message="one")
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(1))
        receipt = writer.finish()

    assert build.commit([receipt], message="nothing new").sequence == 1
    assert build.commit([], message="nothing at all").sequence == 1
    assert len(list(store.log())) == 1


def test_packs_are_closed_at_their_size_and_large_payloads_stand_alone(store: Store) -> None:
    build = store.build("b", owner="test", target_bytes=4096)
    with build.writer("unit") as writer:
        refs = [writer.add(memory(number, size=1000)) for number in range(12)]
        refs.append(writer.add(memory(99, size=10_000)))
        receipt = writer.finish()
    build.commit([receipt], message="packs")

    packs = {row.ref: row.pack for row in store.catalog().rows()}

    assert len(receipt.packs) == 5
    assert list(packs.values()).count(packs[refs[-1]]) == 1
    assert store.read(refs[-1]) == memory(99, size=10_000).payload
    assert store.read(refs[5]) == memory(5, size=1000).payload


def test_a_snapshot_reads_lists_and_streams_its_elements(store: Store) -> None:
    snapshot = store.pin(publish_twenty(store), message="pin")

    assert snapshot.count == 21
    assert snapshot.bytes == 20 * 200 + len(codec().payload)
    assert snapshot.kinds == {"codec": 1, "memory": 20}
    assert [row.name for row in snapshot.rows("memory")] == [f"memory/doc/{n:05d}" for n in range(20)]
    assert snapshot.one("codec").name == "codec/c"
    assert snapshot.read("memory/doc/00007") == memory(7).payload
    assert {row.name: data for row, data in snapshot.stream()} == {
        row.name: store.read(row) for row in snapshot.rows()
    }
    with pytest.raises(ElementNotFound, match="memory/other"):
        snapshot.get("memory/other")
    with pytest.raises(ElementNotFound, match="20 elements"):
        snapshot.one("memory")


def test_one_element_of_a_large_snapshot_takes_few_requests(store: Store, store_url: str) -> None:
    refs = store.publish([memory(number, size=8) for number in range(3000)], message="many")
    identity = store.pin(refs, message="pin").id
    other = Store.open(store_url)
    requests = count_reads(other)

    snapshot = other.snapshot(identity)
    payload = snapshot.read("memory/doc/01500")

    assert payload == memory(1500, size=8).payload
    assert len(requests) <= 4
    assert len(snapshot.rows()) == 3000


def count_reads(store: Store) -> list[str]:
    """Record every read that the store's backend serves from now on."""
    backend, keys = store.backend, []
    read = backend.read

    def counted(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        keys.append(key)
        return read(key, offset=offset, length=length)

    backend.read = counted  # type: ignore[method-assign]
    return keys


def test_pinning_is_idempotent_whatever_the_order(store: Store) -> None:
    refs = publish_twenty(store)

    one = store.pin(refs, message="one")
    two = store.pin(list(reversed(refs)) + refs[:3], message="two")

    assert one.id == two.id
    assert [commit.action for commit in store.log()] == ["publish", "pin"]


def test_pinning_an_incomplete_set_is_refused_by_name(store: Store) -> None:
    refs = publish_twenty(store)

    with pytest.raises(MissingRequirement, match="codec/c"):
        store.pin(refs[1:], message="without codec")

    assert len(list(store.log())) == 1


def test_pinning_refuses_two_versions_of_a_name_unknown_versions_and_nothing(store: Store) -> None:
    refs = store.publish([codec(width=4), codec(width=5)], message="two versions")

    with pytest.raises(InputError, match="two versions of codec/c"):
        store.pin(refs, message="both")
    with pytest.raises(ElementNotFound, match="memory/doc/00001"):
        store.pin([memory(1).ref], message="unknown")
    with pytest.raises(ElementNotFound, match="codec/renamed"):
        store.pin([Ref("codec/renamed", refs[0].version)], message="wrong name")
    with pytest.raises(InputError, match="empty"):
        store.pin([], message="nothing")


def test_a_snapshot_is_found_by_id_prefix_tag_and_head(store: Store) -> None:
    one = store.pin(store.publish([memory(1)], message="m"), message="one")
    two = store.pin(store.publish([memory(2)], message="m"), message="two")
    store.tag("v1", one.id)
    store.tag("v1", one.id)
    store.move_head("main", two.id, expect=None)
    store.tag("both", one.id)
    store.move_head("both", two.id, expect=None)

    assert store.snapshot(one.id).id == store.snapshot(one.id[:8]).id == store.snapshot("v1").id == one.id
    assert store.snapshot("main").id == store.snapshot("head:both").id == two.id
    assert store.snapshot("tag:both").id == one.id
    assert store.tags() == {"v1": one.id, "both": one.id}
    assert store.heads() == {"main": two.id, "both": two.id}
    with pytest.raises(InputError, match="head:both or tag:both"):
        store.snapshot("both")
    with pytest.raises(SnapshotNotFound, match="nowhere"):
        store.snapshot("nowhere")
    with pytest.raises(SnapshotNotFound):
        store.snapshot("0" * 64)
    with pytest.raises(SnapshotNotFound):
        store.snapshot(one.id[:7])


def test_tags_never_move_and_heads_move_only_from_where_they_are(store: Store) -> None:
    one = store.pin(store.publish([memory(1)], message="m"), message="one")
    two = store.pin(store.publish([memory(2)], message="m"), message="two")
    store.tag("v1", one.id)
    store.move_head("main", one.id, expect=None)

    with pytest.raises(TagExists, match="v1"):
        store.tag("v1", two.id)
    with pytest.raises(HeadMoved, match="main"):
        store.move_head("main", two.id, expect=None)
    with pytest.raises(HeadMoved, match="main"):
        store.move_head("main", two.id, expect=two.id)
    with pytest.raises(HeadMoved, match="other"):
        store.move_head("other", two.id, expect=one.id)
    with pytest.raises(SnapshotNotFound):
        store.tag("v2", "0" * 64)
    store.move_head("main", two.id, expect=one.id)

    assert (store.head("main"), store.head("none")) == (two.id, None)
    assert store.tags() == {"v1": one.id}


def test_creating_over_a_store_is_refused_and_opening_it_works(store: Store, store_url: str) -> None:
    store.publish([memory(1)], message="m")

    with pytest.raises(StoreExists):
        Store.create(store_url)

    assert len(Store.open_or_create(store_url).catalog()) == 1


def test_a_long_history_opens_from_a_checkpoint(store: Store, store_url: str) -> None:
    for number in range(70):
        store.publish([memory(number)], message=f"commit {number}")
    store.pin([memory(3).ref], message="pin")
    other = Store.open(store_url)
    requests = count_reads(other)

    rows = other.catalog().rows()

    assert [row.commit for row in rows] == list(range(1, 71))
    assert rows == store.catalog().rows()
    assert [commit.message for commit in other.log()][:2] == ["commit 0", "commit 1"]
    assert len(requests) < 30
    assert store.verify(full=True).ok


def test_one_store_serves_many_threads(store: Store) -> None:
    def work(number: int) -> bytes:
        [ref] = store.publish([memory(number)], message=str(number))
        store.catalog().rows()
        return store.read(ref)

    with ThreadPoolExecutor(8) as pool:
        payloads = list(pool.map(work, range(24)))

    assert payloads == [memory(number).payload for number in range(24)]
    assert [commit.elements for commit in store.log()] == [1] * 24
    assert store.verify(full=True).ok


def test_commits_record_the_run_that_the_store_was_opened_for(store: Store) -> None:
    mine = Store(store.backend, run={"flow": "build-memory"})
    [ref] = mine.publish([memory(0)], message="first", run={"host": "here"})
    mine.pin([ref], message="second")
    assert [commit.run for commit in store.log()] == [
        {"flow": "build-memory", "host": "here"},
        {"flow": "build-memory"},
    ]
