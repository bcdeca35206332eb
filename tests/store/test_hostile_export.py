"""An export may come from anywhere: what is not as `export` makes it is refused, whole, by one sentence."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Row, Snapshot, Store
from store.backend import open_backend
from store.backend.tar import BLOCK, END, header, padding
from store.errors import CellarError, InputError, IntegrityError
from store.format import (
    FORMAT_KEY,
    canonical_json,
    encode_format,
    index_key,
    log_key,
    pack_key,
    seal,
    sha256,
    signature_key,
    unseal,
)
from store.keys import key_id, read_private_key, write_key_pair
from store.pack import END as PACK_END
from store.pack import FRAME, MAGIC, head_of
from store.rows import SCHEMA, decode_table, encode_rows, encode_table, rows_of
from store.signature import Signature, sign
from store.transfer import check_archive, copy_snapshot, export_snapshot
from store.transfer.layout import log_of, names_of, snapshot_of
from store.trust import sign_snapshot
from tests.store.samples import codec, memory
from tests.store.test_copy import content
from tests.store.test_tar import tar_of

Objects = dict[str, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Snapshot, Path]:
    """Return a store, its snapshot, and a signed and tagged export of it."""
    folder = tmp_path_factory.mktemp("made")
    store = Store.create(str(folder / "store"))
    needed = codec().version
    refs = store.publish(
        [codec(), *(memory(n, size=60, requires=(needed,)) for n in range(4))], message="all"
    )
    snapshot = store.pin(refs, message="pin")
    write_key_pair(folder / "key")
    sign_snapshot(store, snapshot, read_private_key(folder / "key", lambda: b""))
    export_snapshot(store, snapshot, folder / "x.tar", tag="v1")
    return store, snapshot, folder


@pytest.fixture
def objects(made: tuple[Store, Snapshot, Path]) -> Objects:
    """Return the objects of the export, to be changed."""
    backend = open_backend(str(made[2] / "x.tar"))
    return {item.key: backend.read(item.key) for item in backend.list("")}


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[Objects, str], None]:
    """Check that objects are refused, as a tar file and as a folder, by one sentence with a phrase."""

    def check(objects: Objects, phrase: str) -> None:
        (tmp_path / "forged.tar").write_bytes(tar_of(objects))
        (tmp_path / "forged").mkdir()
        for key, data in objects.items():
            (tmp_path / "forged" / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "forged" / key).write_bytes(data)
        for name in ("forged.tar", "forged"):
            with pytest.raises((IntegrityError, InputError), match=phrase) as caught:
                check_archive(str(tmp_path / name))
            assert caught.value.exit_code in (5, 2)
            assert "\n" not in str(caught.value)

    return check


def one(objects: Objects, prefix: str, suffix: str = "") -> str:
    [key] = [key for key in objects if key.startswith(prefix) and key.endswith(suffix)]
    return key


def rebuilt(objects: Objects, rows: Iterable[Row], packs: dict[str, bytes] | None = None) -> Objects:
    """Return an export with consistent digests and seals around any rows and packs."""
    if packs is None:
        packs = {key.rpartition("/")[2]: data for key, data in objects.items() if key.startswith("packs/")}
    sizes = {digest: len(data) for digest, data in packs.items()}
    chosen = list(rows)
    data = encode_rows(sorted(chosen, key=lambda row: row.name), {"packs": sizes})
    index, snapshot = {index_key(sha256(data)): data}, snapshot_of(chosen)
    identity = one(snapshot, "snapshots/", ".json").removeprefix("snapshots/").removesuffix(".json")
    [digest] = [key.removeprefix("index/").removesuffix(".parquet") for key in index]
    forged = {**names_of(identity, "v1"), **index, **snapshot, **log_of(identity, digest, chosen, sizes)}
    return forged | {pack_key(digest): data for digest, data in packs.items()}


def rows_in(objects: Objects) -> list[Row]:
    key = one(objects, "index/")
    return rows_of(decode_table(objects[key], key)[0])


def authentic(row: Row) -> Row:
    """Return the row with the version that what it says makes."""
    return replace(row, version=sha256(canonical_json(json.loads(head_of(row))["record"])))


def test_the_export_itself_passes(
    made: tuple[Store, Snapshot, Path], objects: Objects, tmp_path: Path
) -> None:
    store, snapshot, folder = made
    source, found = check_archive(str(folder / "x.tar"))
    assert (found.snapshot, found.tag, len(found.signatures), found.packs) == (snapshot.id, "v1", 1, 1)
    destination = Store.create(str(tmp_path / "copy"))
    copy_snapshot(source, source.snapshot(found.snapshot), destination)
    assert content(destination, snapshot.id) == content(store, snapshot.id)
    (tmp_path / "again.tar").write_bytes(tar_of(rebuilt(objects, rows_in(objects))))
    assert check_archive(f"file:{tmp_path}/again.tar")[1].snapshot == snapshot.id  # so `rebuilt` is right


def test_nothing_may_be_missing(objects: Objects, tmp_path: Path) -> None:
    for key in objects:
        if key.startswith(("refs/", "signatures/")):
            continue
        fewer = {other: data for other, data in objects.items() if other != key}
        (tmp_path / "x.tar").write_bytes(tar_of(fewer))
        with pytest.raises((IntegrityError, InputError)):
            check_archive(str(tmp_path / "x.tar"))


@pytest.mark.parametrize(
    "key",
    [
        "README",
        "FORMAT.json",
        "log/00000000000000000003.json",
        "log/00000000000000000000.json",
        f"log/checkpoint-{64:020d}.json",
        "builds/b/lease.json",
        "refs/heads/main",
        "refs/tags/v2",
        "pins/run.json",
        f"gc/{'a' * 64}.json",
        f"packs/aa/{'a' * 64}",
        f"packs/ab/{'a' * 64}",
        f"packs/{'a' * 64}",
        f"index/{'a' * 64}.parquet",
        f"snapshots/{'a' * 64}.json",
        f"snapshots/{'a' * 64}.parquet",
        f"signatures/{'a' * 64}/{'a' * 64}.json",
    ],
)
def test_nothing_may_be_added(objects: Objects, refused: Callable[[Objects, str], None], key: str) -> None:
    refused(objects | {key: b"{}"}, "get it again|get the export again|do not trust it")


@pytest.mark.parametrize("value", [0, 3, "x", [], None, True])
@pytest.mark.parametrize(
    "prefix", ["format.json", "log/00000000000000000001", "log/00000000000000000002", "refs/"]
)
def test_every_field_of_a_sealed_record_is_checked(
    objects: Objects, tmp_path: Path, prefix: str, value: object
) -> None:
    key = one(objects, prefix)
    record = unseal(objects[key], key)
    for field in record:
        if record[field] == value and type(record[field]) is type(value):
            continue
        (tmp_path / "x.tar").write_bytes(tar_of(objects | {key: seal(record | {field: value})}))
        with pytest.raises((IntegrityError, InputError)):
            check_archive(str(tmp_path / "x.tar"))


@pytest.mark.parametrize(
    "change",
    [
        {"count": 6},
        {"bytes": 1},
        {"kinds": {"memory": 5}},
        {"kinds": {"codec": 2, "memory": 3}},
        {"groups": []},
        {"groups": [["a", "b", 4, 10, "c" * 64]]},
        {"groups": [None]},
        {"footer": [0, 2**40, "d" * 64]},
        {"footer": ["x", None, 1]},
        {"rows": "e" * 64},
        {"rows": 7},
        {"id": "f" * 64},
        {"footer_zlib": "AAAA"},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_forged_head_of_the_snapshot_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None], change: dict[str, Any]
) -> None:
    key = one(objects, "snapshots/", ".json")
    refused(objects | {key: seal(unseal(objects[key], key) | change)}, "snapshot")


def lie(change: Callable[[Row], Row]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows[:-1], change(rows[-1])]


@pytest.mark.parametrize(
    ("forge", "phrase"),
    [
        (lie(lambda row: replace(row, facts={"token_recall": 1.0})), "another element than"),
        (
            lie(lambda row: replace(row, facts={**row.facts, "steps": True})),
            "another element than|no element",
        ),
        (lie(lambda row: replace(row, dtype="F32", shape=(1,))), "another element than"),
        (lie(lambda row: replace(row, name="memory/other")), "in a way that its version denies"),
        (lie(lambda row: authentic(replace(row, name="memory/other"))), "another element than"),
        (lie(lambda row: authentic(replace(row, provenance={}))), "another element than"),
        (lie(lambda row: authentic(replace(row, requires=()))), "another element than"),
        (lie(lambda row: authentic(replace(row, requires=("a" * 64,)))), "requires version aaaaaaaaaaaa"),
        (lie(lambda row: authentic(replace(row, digest="a" * 64))), "another element than"),
        (lie(lambda row: authentic(replace(row, length=row.length - 1))), "another element than"),
        (lie(lambda row: replace(row, offset=row.offset + 1)), "holds no memory/doc/00003"),
        (lie(lambda row: replace(row, pack="a" * 64)), "tells of other packs than there are"),
        (lie(lambda row: replace(row, commit=1)), "in a way that its version denies"),
        (lambda rows: [*rows, rows[-1]], "holds memory/doc/00003 twice"),
        (lambda rows: [*rows, authentic(replace(rows[-1], facts={}, provenance={}))], "twice"),
        (lambda rows: [row for row in rows if row.kind != "codec"], "requires version"),
    ],
)
def test_rows_that_say_something_else_than_the_packs_are_refused(
    objects: Objects,
    refused: Callable[[Objects, str], None],
    forge: Callable[[list[Row]], list[Row]],
    phrase: str,
) -> None:
    refused(rebuilt(objects, forge(rows_in(objects))), phrase)


def test_the_snapshot_must_hold_what_the_index_holds(
    objects: Objects, refused: Callable[[Objects, str], None]
) -> None:
    rows = rows_in(objects)
    identity = one(objects, "snapshots/", ".json").removeprefix("snapshots/").removesuffix(".json")
    facts = snapshot_of([*rows[:-1], replace(rows[-1], facts={"token_recall": 1.0})])
    assert f"snapshots/{identity}.json" in facts  # facts do not change the id
    fewer = {key: data for key, data in objects.items() if not key.startswith("snapshots/")}
    refused(fewer | facts, "is not the snapshot of the elements in the index")


def frame(head: bytes, payload: bytes, **lies: int) -> bytes:
    lengths = lies.get("head_length", len(head)), lies.get("payload_length", len(payload))
    digests = hashlib.sha256(head).digest(), hashlib.sha256(payload).digest()
    return struct.pack("<4sIQ32s32s", FRAME, *lengths, *digests) + head + payload


def pack_of(frames: list[tuple[bytes, bytes]], footer: object = None, **lies: int) -> bytes:
    """Return a pack with right checksums around any heads and payloads."""
    data, places = MAGIC, []
    for head, payload in frames:
        places.append([len(data), len(data) + 80 + len(head), len(payload)])
        data += frame(head, payload, **lies)
    text = canonical_json({"frames": places}) if footer is None else footer
    assert isinstance(text, bytes)
    return data + text + struct.pack("<Q32s8s", len(text), hashlib.sha256(text).digest(), PACK_END)


NAN = b'{"dtype":"","facts":{"x":NaN},"record":{},"shape":[]}'


@pytest.mark.parametrize(
    "forge",
    [
        lambda head, payload: pack_of([(head, payload + b"x")]),
        lambda head, payload: pack_of([(head[:-1] + b" }", payload)]),
        lambda head, payload: pack_of([(b"{}", payload)]),
        lambda head, payload: pack_of([(b"[1]", payload)]),
        lambda head, payload: pack_of([(b"[" * 100_000, payload)]),
        lambda head, payload: pack_of([(NAN, payload)]),
        lambda head, payload: pack_of([(head.replace(b'"shape":[]', b'"shape":[-1]'), payload)]),
        lambda head, payload: pack_of([(head.replace(b'"kind":"memory"', b'"kind":"memory/doc"'), payload)]),
        lambda head, payload: pack_of([(head.replace(b'"name":"doc', b'"name":"../doc'), payload)]),
        lambda head, payload: pack_of([(head, payload)], payload_length=2**63),
        lambda head, payload: pack_of([(head, payload)], head_length=2**31),
        lambda head, payload: pack_of([(head, payload)], b'{"frames":[[8,2,-5]]}'),
        lambda head, payload: pack_of([(head, payload)], b'{"frames":[[8,1e3,60]]}'),
        lambda head, payload: pack_of([(head, payload)], b'{"frames":7}'),
        lambda head, payload: pack_of([(head, payload)], b'{"other":[]}'),
        lambda head, payload: pack_of([(head, payload)], b'{"frames":[]}'),
        lambda head, payload: pack_of([(head, payload)], b"not json"),
        lambda head, payload: pack_of([(head, payload), (b"{}", b"hidden")]),
        lambda head, payload: pack_of([(head, payload)])[:-1],
        lambda head, payload: b"",
        lambda head, payload: MAGIC,
    ],
)
def test_a_pack_that_is_well_sealed_but_forged_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None], forge: Callable[[bytes, bytes], bytes]
) -> None:
    element = memory(3, size=60)
    row = next(row for row in rows_in(objects) if row.name == element.full_name)
    row = authentic(replace(row, requires=()))
    head = head_of(row)
    data = forge(head, element.payload)
    digest = sha256(data)
    placed = replace(row, pack=digest, offset=len(MAGIC) + 80 + len(head))
    refused(
        rebuilt(objects, [placed], {digest: data}), "damaged|no store wrote|another element than|holds no"
    )


@pytest.mark.parametrize("size", [10_000, 8 * 1024**2], ids=["little", "much"])
@pytest.mark.parametrize("column", ["facts", "provenance", "requires", "shape"])
def test_a_table_that_says_more_than_its_packs_can_is_refused_undecoded(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, size: int
) -> None:
    """Compressed, such a table is small; as Python objects it takes thirty times its text."""
    key = one(objects, "index/")
    table, metadata = decode_table(objects[key], key)
    lists = {"requires": ["a" * 64] * (size // 64), "shape": [1] * min(size // 2, 10**6)}
    row = {**table.to_pylist()[0], column: lists.get(column, '{"a":[' + "[]," * (size // 3) + "[]]}")}
    forged = pa.Table.from_pylist([row], schema=SCHEMA)
    data = encode_table(forged.replace_schema_metadata({"cellar": json.dumps(metadata)}))
    assert len(data) < 30_000
    (tmp_path / "x.tar").write_bytes(tar_of(with_index(objects, data)))
    monkeypatch.setattr("store.transfer.check.rows_of", lambda table: pytest.fail("decoded"))
    with pytest.raises(IntegrityError, match=r"says more than its packs|is not a table") as caught:
        check_archive(str(tmp_path / "x.tar"))
    assert caught.value.exit_code == 5


def test_a_hidden_frame_that_is_an_element_is_allowed(objects: Objects, tmp_path: Path) -> None:
    """Packs travel whole where most of them is wanted, so they may hold more than the snapshot."""
    rows = [row for row in rows_in(objects) if row.kind == "codec"]
    (tmp_path / "x.tar").write_bytes(tar_of(rebuilt(objects, rows)))

    source, found = check_archive(str(tmp_path / "x.tar"))

    assert [row.name for row in found.rows] == ["codec/c"]
    destination = Store.create(str(tmp_path / "copy"))
    copy_snapshot(source, source.snapshot(found.snapshot), destination)
    assert len(destination.catalog()) == 1


def with_index(objects: Objects, data: bytes) -> Objects:
    """Return the export with other bytes as its index, and a log that names them."""
    [identity] = [key[10:-5] for key in objects if key.startswith("snapshots/") and key.endswith(".json")]
    digest = sha256(data)
    first = unseal(objects[log_key(1)], "log")
    packs = {key[9:]: len(body) for key, body in objects.items() if key.startswith("packs/")}
    entries = log_of(identity, digest, rows_in(objects), packs)
    assert unseal(entries[log_key(1)], "log") | {"indexes": first["indexes"]} == first
    others = {key: body for key, body in objects.items() if not key.startswith("index/")}
    return others | entries | {index_key(digest): data}


def test_a_bomb_of_a_table_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.parquet._MAX_DECODED_BYTES", 2**22)
    key = one(objects, "index/")
    [row, *_] = decode_table(objects[key], key)[0].to_pylist()
    rows = pa.Table.from_pylist([row | {"media": "x" * 2**14}] * 4000, schema=SCHEMA)
    bomb = encode_table(rows.replace_schema_metadata({"cellar": '{"packs":{}}'}))
    assert len(bomb) < 2**19

    refused(with_index(objects, bomb), "is not a table of this store")


@pytest.mark.parametrize("count", [100, 20_000])
def test_more_rows_than_the_packs_have_room_for_are_refused_before_they_are_made(
    objects: Objects, refused: Callable[[Objects, str], None], count: int
) -> None:
    row, key = rows_in(objects)[0], one(objects, "index/")
    packs = decode_table(objects[key], key)[1]

    forged = with_index(objects, encode_rows([row] * count, packs))
    refused(forged, "says more than its packs can hold|is not a table of this store")


def test_a_head_that_brings_a_footer_of_its_own_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None]
) -> None:
    """Such a footer could make other rows of the same bytes than those that are checked."""
    key = one(objects, "snapshots/", ".json")
    head = unseal(objects[key], key)
    offset, length, _ = head["footer"]
    data = objects[one(objects, "snapshots/", ".parquet")]
    other = (
        data[offset : offset + length].replace(b"created_by", b"CREATED_BY").replace(b"parquet", b"PARQUET")
    )
    assert other != data[offset : offset + length]
    change = {
        "footer": [offset, length, sha256(other)],
        "footer_zlib": base64.b64encode(zlib.compress(other, 9)).decode(),
    }

    refused(objects | {key: seal(head | change)}, "says that its rows lie elsewhere than they do")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\0" * 4096])
def test_an_index_that_is_no_table_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None], data: bytes
) -> None:
    refused(with_index(objects, data), "is not a table of this store")


def test_a_member_larger_than_it_can_be_is_refused_before_it_is_read(
    objects: Objects, tmp_path: Path
) -> None:
    for key, size in ((FORMAT_KEY, 2**17), (pack_key("a" * 64), 5 * 2**30), (log_key(1), 2**20)):
        rest = tar_of({other: data for other, data in objects.items() if other != key})
        path = tmp_path / "x.tar"
        with path.open("wb") as file:
            file.write(header(key, size))
            file.truncate(BLOCK + size + len(padding(size)))  # a hole: it takes no space
            file.seek(0, os.SEEK_END)
            file.write(rest)
        with pytest.raises((IntegrityError, InputError), match=r"larger than it can be|is damaged"):
            check_archive(str(path))
        assert rest.endswith(END)


def signature_objects(objects: Objects) -> tuple[str, dict[str, Any]]:
    key = one(objects, "signatures/")
    return key, unseal(objects[key], key)


@pytest.mark.parametrize("field", ["key", "signature", "snapshot", "algorithm"])
def test_an_altered_signature_is_refused(
    objects: Objects, refused: Callable[[Objects, str], None], field: str
) -> None:
    key, record = signature_objects(objects)
    altered = record[field][:-1] + ("0" if record[field][-1] != "0" else "1")
    refused(objects | {key: seal(record | {field: altered})}, f"{key} is no signature of that key")


def test_a_signature_by_another_key_or_on_another_snapshot_is_refused(
    made: tuple[Store, Snapshot, Path], objects: Objects, tmp_path: Path
) -> None:
    _, snapshot, folder = made
    key, _ = signature_objects(objects)
    _, other_public = write_key_pair(tmp_path / "other")
    other = read_private_key(tmp_path / "other", lambda: b"")
    mine = read_private_key(folder / "key", lambda: b"")
    elsewhere = sign("a" * 64, mine)
    for forged in (
        {key: sign(snapshot.id, other).encode()},
        {key: Signature(snapshot.id, elsewhere.key, elsewhere.signature).encode()},
        {signature_key(snapshot.id, key_id(other_public)): objects[key]},
        {elsewhere.storage_key: elsewhere.encode()},
    ):
        (tmp_path / "x.tar").write_bytes(tar_of(objects | forged))
        with pytest.raises(IntegrityError, match="is no signature of that key on snapshot"):
            check_archive(str(tmp_path / "x.tar"))
    (tmp_path / "x.tar").write_bytes(tar_of(objects))
    with pytest.raises(IntegrityError, match=f"is not signed by key {key_id(other_public)[:12]}"):
        check_archive(str(tmp_path / "x.tar"), keys=[other_public])
    assert check_archive(str(tmp_path / "x.tar"), keys=[mine.public_key()])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_archive_is_refused_or_holds_the_same(
    made: tuple[Store, Snapshot, Path], tmp_path: Path, data: st.DataObject
) -> None:
    store, snapshot, folder = made
    whole = (folder / "x.tar").read_bytes()
    position = st.integers(0, len(whole) - 1)
    match data.draw(st.sampled_from(["flip", "cut", "remove", "insert", "copy"])):
        case "flip":
            changed = bytearray(whole)
            changed[data.draw(position)] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            changed = bytearray(whole[: data.draw(position)])
        case "remove":
            first, last = sorted((data.draw(position), data.draw(position)))
            changed = bytearray(whole[:first] + whole[last + 1 :])
        case "insert":
            place = data.draw(position)
            changed = bytearray(
                whole[:place] + data.draw(st.binary(min_size=1, max_size=600)) + whole[place:]
            )
        case _:
            first, last, place = (data.draw(position) // BLOCK * BLOCK for _ in range(3))
            changed = bytearray(whole)
            changed[place : place + BLOCK] = whole[first : first + BLOCK] + whole[last:last]
    (tmp_path / "mutated.tar").write_bytes(changed)
    try:
        source, found = check_archive(str(tmp_path / "mutated.tar"))
    except (IntegrityError, InputError):
        return
    assert found.snapshot == snapshot.id
    assert content(source, snapshot.id) == content(store, snapshot.id)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_a_flipped_archive_that_is_opened_gives_right_bytes_or_an_error(
    made: tuple[Store, Snapshot, Path], tmp_path: Path, position: int, bit: int
) -> None:
    store, snapshot, folder = made
    changed = bytearray((folder / "x.tar").read_bytes())
    changed[position % len(changed)] ^= 1 << bit
    (tmp_path / "flipped.tar").write_bytes(changed)
    try:
        found = content(Store.open(str(tmp_path / "flipped.tar")), snapshot.id)
    except CellarError:
        return
    assert found == content(store, snapshot.id)


def test_a_store_or_something_else_is_not_imported(
    made: tuple[Store, Snapshot, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is a store, not an export"):
        check_archive(made[0].url)
    with pytest.raises(InputError, match=r"is no export, it has no format\.json"):
        check_archive(str(tmp_path))
    (tmp_path / FORMAT_KEY).write_bytes(encode_format(store="s", created="c")[:-1])
    with pytest.raises(IntegrityError, match=r"format\.json is damaged"):
        check_archive(str(tmp_path))
