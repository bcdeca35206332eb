"""What is remembered of shards and rejected documents comes back as it was, and is no other payload."""

from dataclasses import replace

import pytest

from store import Ref
from tasks.errors import BadPayload
from tasks.memory import Figures, Outcome
from tasks.memory.record import decode_outcomes, encode_outcomes

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
