"""Shared n-grams are counted exactly: as sets in plain Python count them, whatever the hash or the order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.audit import SEEN, AuditDocuments, Side, shared_ngrams
from tests.tasks.audit.conftest import made, windows

IDS = st.lists(st.integers(0, 2), max_size=20)
DOCUMENTS = st.lists(st.tuples(st.sampled_from(list(Side)), IDS), max_size=8)


def counted_by_sets(documents: AuditDocuments, n: int) -> list[list[int]]:
    """For each document its distinct n-grams, those of each side, and those of all that training saw."""
    texts = [documents.tokens(number).tolist() for number in range(len(documents))]
    held: dict[int, set[tuple[int, ...]]] = {side: set() for side in Side}
    for side, text in zip(documents.side_D.tolist(), texts, strict=True):
        held[side] |= windows(text, n)
    seen = set().union(*(held[side] for side in SEEN))
    return [
        [len(own := windows(text, n)), *(len(own & held[side]) for side in Side), len(own & seen)]
        for text in texts
    ]


def counted(documents: AuditDocuments, n: int, **options: object) -> list[list[int]]:
    shared = shared_ngrams(documents, n, **options)  # type: ignore[arg-type]
    columns = [shared.distinct, *(shared.shared_with([side]) for side in Side), shared.shared_with(SEEN)]
    return np.stack(columns, 1).tolist()


@given(DOCUMENTS, st.integers(1, 5))
def test_counts_are_those_of_sets(given_: list[tuple[Side, list[int]]], n: int) -> None:
    documents = made(*((f"d{number}", side, ids) for number, (side, ids) in enumerate(given_)))
    assert counted(documents, n) == counted_by_sets(documents, n)


@given(DOCUMENTS, st.integers(1, 4), st.integers(1, 3))
def test_n_grams_of_one_hash_are_told_apart(
    given_: list[tuple[Side, list[int]]], n: int, hashes: int
) -> None:
    def colliding(tokens_N: np.ndarray, n: int) -> np.ndarray:
        runs = [sum(tokens_N[at : at + n].tolist()) % hashes for at in range(len(tokens_N) - n + 1)]
        return np.array(runs, np.uint64) << np.uint64(62)

    documents = made(*((f"d{number}", side, ids) for number, (side, ids) in enumerate(given_)))
    assert counted(documents, n, hasher=colliding, part=4) == counted_by_sets(documents, n)


def test_a_planted_passage_is_found_to_the_last_n_gram() -> None:
    rng = np.random.default_rng(1)
    passage = rng.integers(0, 4000, 40).tolist()
    own, other = (rng.integers(4000, 60_000, 100).tolist() for _ in range(2))
    documents = made(
        ("a", Side.TEST, own[:50] + passage + own[50:]),
        ("b", Side.TRAIN, other + passage),
        ("c", Side.TEST, own[:12]),
    )
    shared = shared_ngrams(documents, 13)
    assert shared.distinct.tolist() == [128, 128, 0]
    assert shared.shared_with([Side.TRAIN])[0] == shared.shared_with([Side.TEST])[1] == 40 - 13 + 1
    assert shared.shared_with([Side.LANGUAGE]).tolist() == [0, 0, 0]


def test_neither_the_parts_nor_the_order_of_documents_change_a_count() -> None:
    rng = np.random.default_rng(2)
    rows = [(f"d{n}", Side(n % 4), rng.integers(0, 3, 50).tolist()) for n in range(20)]
    whole = counted(made(*rows), 6)
    assert whole == counted(made(*rows[::-1]), 6) == counted(made(*rows), 6, part=7)


@pytest.mark.parametrize("documents", [[], [("a", Side.TEST, [])], [("a", Side.TEST, [1] * 12)]])
def test_documents_too_short_for_a_run_have_none(documents: list[tuple[str, Side, list[int]]]) -> None:
    assert shared_ngrams(made(*documents), 13).distinct.tolist() == [0] * len(documents)
