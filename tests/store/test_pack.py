"""Packs hold what was put in, describe themselves, and notice every flipped bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import Element
from store.errors import IntegrityError
from store.pack import PackBuilder, SealedPack, frames
from tests.store.samples import BYTES, memory, tensors

payloads = st.lists(st.binary(max_size=300), min_size=1, max_size=6)


def packed(*contents: bytes) -> SealedPack:
    builder = PackBuilder()
    for number, payload in enumerate(contents):
        builder.add(Element("skill", f"s{number}", payload, media=BYTES, facts={"n": number}))
    return builder.seal()


@given(payloads)
def test_rows_point_at_the_payloads(contents: list[bytes]) -> None:
    pack = packed(*contents)

    assert [bytes(pack.data[row.offset : row.offset + row.length]) for row in pack.rows] == contents
    assert {row.pack for row in pack.rows} == {pack.digest}


@given(payloads)
def test_an_index_can_be_rebuilt_from_the_frames(contents: list[bytes]) -> None:
    pack = packed(*contents)

    for frame, row in zip(frames(pack.data, "p"), pack.rows, strict=True):
        record = frame.head["record"]
        assert f"{record['kind']}/{record['name']}" == row.name
        assert record["payload"] == {"digest": row.digest, "length": row.length}
        assert (frame.offset, frame.length, frame.payload_digest) == (row.offset, row.length, row.digest)
        assert frame.head["facts"] == row.facts


@given(payloads, st.data())
def test_any_flipped_bit_is_noticed(contents: list[bytes], data: st.DataObject) -> None:
    damaged = bytearray(packed(*contents).data)
    position = data.draw(st.integers(0, len(damaged) * 8 - 1))

    damaged[position // 8] ^= 1 << position % 8

    with pytest.raises(IntegrityError, match="pack p is damaged"):
        list(frames(damaged, "p"))


@given(payloads, st.data())
def test_any_cut_is_noticed(contents: list[bytes], data: st.DataObject) -> None:
    whole = packed(*contents).data
    length = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(IntegrityError, match="pack p is damaged"):
        list(frames(whole[:length], "p"))


def test_equal_elements_make_equal_packs() -> None:
    assert packed(b"a", b"b").digest == packed(b"a", b"b").digest
    assert packed(b"a", b"b").digest != packed(b"b", b"a").digest


def test_frames_keep_dtype_and_shape() -> None:
    builder = PackBuilder()
    builder.add(Element("core", "c", tensors((2, 3))))
    builder.add(memory(1))

    first, second = frames(builder.seal().data, "p")

    assert (first.head["dtype"], first.head["shape"]) == ("F32", [2, 3])
    assert (second.head["dtype"], second.head["shape"]) == ("", [])
