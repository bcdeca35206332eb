"""Parameters of workers, and which of them make another memory."""

import pytest
from pydantic import ValidationError

from tasks.memory import MemoryParams


def test_what_concerns_large_vocabularies_enters_the_identity_only_where_it_is_set() -> None:
    usual = MemoryParams().identity()

    assert set(usual) == {
        "dtype",
        "loss",
        "margin",
        "max_steps",
        "patience",
        "rate",
        "tile_blocks",
        "token_recall",
    }
    assert MemoryParams(candidates=512).identity() == {**usual, "candidates": 512}
    assert MemoryParams(products="bfloat16").identity() == {**usual, "products": "bfloat16"}
    assert MemoryParams(unit_documents=3).identity() == usual


def test_candidates_beyond_the_vocabularies_that_need_none_are_refused() -> None:
    with pytest.raises(ValidationError, match="raise whole_vocabulary, which is 100"):
        MemoryParams(whole_vocabulary=100, candidates=200)
