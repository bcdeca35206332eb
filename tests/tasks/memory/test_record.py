"""What is remembered of shards and rejected documents comes back as it was, and is no other payload."""

from dataclasses import replace
from pathlib import Path

import pytest

from store import Ref, Store
from tasks.errors import BadPayload
from tasks.memory import Figures, MemoryParams, Outcome, ShardResult
from tasks.memory.record import decode_outcomes, encode_outcomes, recorded, shard_record

FIGURES = Figures(1, 70, 2, 63, 0.1 + 0.2, 1 / 3, 2.5e-7, 12, 3072)


def test_outcomes_come_back_to_the_last_bit() -> None:
    published = Outcome("a/ä", Ref("memory/a/ä", "0" * 64), FIGURES)
    rejected = Outcome("b", None, replace(FIGURES, loss=9.5))
    assert decode_outcomes(encode_outcomes([published, rejected])) == [published, rejected]
    assert encode_outcomes([published, rejected]) == encode_outcomes([published, rejected])


def test_an_empty_shard_has_a_record_too() -> None:
    assert decode_outcomes(encode_outcomes([])) == []


@pytest.mark.parametrize("payload", [b"", b"PAR1", b"\0" * 100])
def test_other_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises(BadPayload, match="outcomes of a shard"):
        decode_outcomes(payload)


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_a_shard_whose_record_is_damaged_counts_as_one_without(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store.create(str(tmp_path))
    tokenizer, codec = Ref("tokenizer/t", "1" * 64), Ref("codec/c", "2" * 64)
    shards = [Ref(f"corpus/docs/shard-{number:02}", str(number) * 64) for number in (1, 3, 5)]
    results = {s: ShardResult(s, (), (Outcome("a", None, FIGURES),), worked=0) for s in shards}
    for result in results.values():  # a pack for each
        record = shard_record(MemoryParams(), result, tokenizer, codec)
        store.publish([record], message="record")
    assert recorded(store, MemoryParams(), shards, tokenizer, codec) == results

    row = store.catalog().rows("corpus")[1]
    [pack] = [path for path in (tmp_path / "packs").rglob("*") if row.pack in path.name]
    data = bytearray(pack.read_bytes())
    pack.unlink()
    if damage == "flipped":
        data[row.offset + row.length // 2] ^= 1
        pack.write_bytes(data)

    left = recorded(Store.open(str(tmp_path)), MemoryParams(), shards, tokenizer, codec)
    assert left == {shard: results[shard] for shard in (shards[0], shards[2])}
    assert f"{row.name} cannot be read" in caplog.text
