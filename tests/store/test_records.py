"""Names, canonical JSON, versions, references and the tables that hold them."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import KINDS, Element, Ref, Row, canonical_json, fingerprint
from store.element import MAX_RECORD_BYTES, SAFETENSORS, check_full_name, encode_record, record_of
from store.errors import IntegrityError, InvalidName, InvalidPayload, InvalidRecord
from store.format import seal, sha256, unseal
from store.pack import PackBuilder
from store.rows import decode_table, encode_rows, iter_rows, rows_of, tabulate, text_bytes
from tests.store.samples import BYTES, memory, tensors

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abé", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
name_parts = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\"), min_size=1, max_size=12
)
names = (
    st.lists(name_parts, min_size=1, max_size=4)
    .map(lambda parts: unicodedata.normalize("NFC", "/".join(parts)))
    .filter(lambda name: not {".", ".."} & set(name.split("/")))
)


@given(json_values)
def test_canonical_json_is_json_and_stable(value: Any) -> None:
    text = canonical_json(value)

    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(max_size=4), st.integers(), max_size=6))
def test_canonical_json_ignores_the_order_of_keys(record: dict[str, int]) -> None:
    assert canonical_json(record) == canonical_json(dict(reversed(record.items())))


@pytest.mark.parametrize(
    "value", [float("nan"), {"a": float("inf")}, {1: 2}, [b"x"], {"a": {1, 2}}, "\ud800"]
)
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidRecord):
        canonical_json(value)


@given(json_values, st.data())
def test_any_flipped_bit_breaks_a_seal(value: Any, data: st.DataObject) -> None:
    sealed = bytearray(seal({"value": value}))
    position = data.draw(st.integers(0, len(sealed) * 8 - 1))
    assert unseal(bytes(sealed), "k") == {"value": value}

    sealed[position // 8] ^= 1 << position % 8

    with pytest.raises(IntegrityError, match="k is damaged"):
        unseal(bytes(sealed), "k")


@given(st.sampled_from(sorted(KINDS)), names, st.from_regex(r"[0-9a-f]{64}", fullmatch=True))
def test_references_survive_their_text_form(kind: str, name: str, version: str) -> None:
    ref = Ref(f"{kind}/{name}", version)

    assert Ref.parse(str(ref)) == ref
    assert ref.kind == kind


@pytest.mark.parametrize(
    "name",
    [
        "memory",
        "memory/",
        "thing/x",
        "/x",
        "memory//x",
        "memory/x/",
        "memory/../x",
        "memory/./x",
        "memory/a\nb",
        "memory/a\0b",
        "memory/a\u202eb",
        "memory/a\\b",
        "memory/ x",
        "memory/x\u3000",
        "memory/e\u0301",
        "memory/" + "x" * 513,
        "memory/" + "é" * 257,
        "memory/\ud800",
    ],
)
def test_names_that_could_mislead_are_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_full_name(name)


@pytest.mark.parametrize("text", ["memory/x", "memory/x@abc", "memory/x@" + "A" * 64, "@" + "a" * 64])
def test_broken_references_are_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        Ref.parse(text)


def test_the_version_is_the_digest_of_the_documented_record() -> None:
    element = Element(
        "skill", "s", b"abc", media=BYTES, requires=("b" * 64, "a" * 64), provenance={"n": (1, 2)}
    )

    text = (
        '{"kind":"skill","media":"application/octet-stream","name":"s","payload":{"digest":"'
        'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","length":3},'
        '"provenance":{"n":[1,2]},"requires":["' + "a" * 64 + '","' + "b" * 64 + '"]}'
    )
    assert element.version == hashlib.sha256(text.encode()).hexdigest()


def test_every_part_of_the_identity_changes_the_version() -> None:
    base: dict[str, Any] = {"kind": "skill", "name": "s", "payload": b"abc", "media": BYTES}
    changes: list[dict[str, Any]] = [
        {"kind": "memory"},
        {"name": "t"},
        {"payload": b"abd"},
        {"media": "text/plain"},
        {"requires": ("a" * 64,)},
        {"provenance": {"seed": 1}},
    ]

    versions = {Element(**{**base, **change}).version for change in [{}, *changes]}

    assert len(versions) == 1 + len(changes)


def test_fingerprints_depend_on_recipe_params_and_inputs() -> None:
    base = fingerprint("codec.train/1", params={"steps": 3}, inputs=["a", "b"])

    assert base == fingerprint("codec.train/1", params={"steps": 3}, inputs=("a", "b"))
    assert base != fingerprint("codec.train/2", params={"steps": 3}, inputs=["a", "b"])
    assert base != fingerprint("codec.train/1", params={"steps": 4}, inputs=["a", "b"])
    assert base != fingerprint("codec.train/1", params={"steps": 3}, inputs=["b", "a"])


@pytest.mark.parametrize(
    "change",
    [
        {"requires": ("not a version",)},
        {"provenance": {"recipe": 3}},
        {"facts": {"loss": float("nan")}},
        {"media": ""},
        {"media": "a\nb"},
    ],
)
def test_elements_with_impossible_records_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord, match=r"skill/s|loss"):
        Element(**{"kind": "skill", "name": "s", "payload": b"", "media": BYTES, **change})


@pytest.mark.parametrize("change", ["provenance", "facts", "requires"])
def test_a_record_that_readers_could_not_hold_is_refused(change: str) -> None:
    half = "x" * (MAX_RECORD_BYTES // 2)
    large = [f"{n:064x}" for n in range(MAX_RECORD_BYTES // 128)] if change == "requires" else {"a": half}
    fitting: dict[str, Any] = {"kind": "skill", "name": "s", "payload": b"", "provenance": {"b": half[:-9]}}
    more = {change: {**fitting["provenance"], "a": half} if change == "provenance" else large}

    assert len(Element(**fitting).provenance_json) >= MAX_RECORD_BYTES // 2 - 1
    with pytest.raises(InvalidRecord, match=r"skill/s: .* as JSON, more than 16,777,216; put"):
        Element(**{**fitting, **more})


def test_a_tensor_whose_shape_makes_a_boundless_head_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.pack.MAX_HEAD_BYTES", 2000)
    builder = PackBuilder()
    builder.add(Element("skill", "s", tensors((1,) * 500), media=SAFETENSORS))
    with pytest.raises(InvalidPayload, match="skill/s: its media type, or dtype or shape"):
        builder.add(Element("skill", "s", tensors((1,) * 1000), media=SAFETENSORS))
    assert len(builder.seal().rows) == 1


@pytest.mark.parametrize("payload", [b"", b"1234567", b"\xff" * 16, tensors((2,))[:-1], tensors((2,)) + b"x"])
def test_malformed_safetensors_are_refused(payload: bytes) -> None:
    with pytest.raises(InvalidPayload, match="core/c"):
        PackBuilder().add(Element("core", "c", payload))


@given(names, st.integers(0, 2**40), st.lists(st.integers(0, 99)), json_values)
def test_a_record_is_encoded_alike_from_its_values_and_from_their_text(
    name: str, length: int, needs: list[int], note: Any
) -> None:
    values = (f"skill/{name}", "text/plain", sha256(b"payload"), length, [f"{need:064x}" for need in needs])
    provenance = {"note": note}

    text = canonical_json(provenance).decode()

    assert encode_record(*values, text) == canonical_json(record_of(*values, provenance))


@given(st.lists(st.integers(0, 50), unique=True, max_size=8), json_values)
def test_rows_survive_their_table(numbers: list[int], note: Any) -> None:
    builder = PackBuilder()
    for number in numbers:
        builder.add(memory(number))
    rows = builder.seal().rows

    data = encode_rows(rows, {"note": note})
    table, metadata = decode_table(data, "k")

    assert rows_of(table) == rows
    assert metadata == {"note": note}
    assert encode_rows(rows, {"note": note}) == data
    assert all(row.is_authentic() for row in rows)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 5), st.integers(1, 300))
def test_rows_of_a_large_table_are_made_in_turn(sizes: list[int], most: int, text: int) -> None:
    builder = PackBuilder()
    for number, size in enumerate(sizes):
        builder.add(Element("skill", str(number), b"", media=BYTES, facts={"text": "x" * size}))
    rows = builder.seal().rows
    table, at_once = tabulate(rows), []

    def noted(part: pa.Table) -> list[Row]:
        at_once.append((len(part), pc.sum(text_bytes(part)).as_py()))
        return rows_of(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("store.rows.rows_of", noted)
        patch.setattr("store.rows._ROWS_AT_ONCE", most)
        patch.setattr("store.rows._TEXT_AT_ONCE", text)
        assert list(iter_rows(table)) == rows

    assert all(count == 1 or (count <= most and size <= text) for count, size in at_once)
