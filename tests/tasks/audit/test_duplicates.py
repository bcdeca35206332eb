"""Near-duplicates: planted ones are found with their exact similarity, and nothing else is reported."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.audit import (
    SEEN,
    AuditDocuments,
    AuditParams,
    Side,
    candidates,
    common_shingles,
    detection,
    near_duplicates,
    promising,
    shingles,
    signatures,
)
from tests.tasks.audit.conftest import Triple, made, windows

PARAMS = AuditParams()
Planted = Callable[[int], list[Triple]]


def pairs_by_sets(documents: AuditDocuments, params: AuditParams) -> dict[tuple[int, int], tuple[int, int]]:
    """All pairs on different sides at or above the threshold, by comparing everything with everything."""
    sets = [windows(documents.tokens(n).tolist(), params.shingle_tokens) for n in range(len(documents))]
    return {
        (left, right): (len(sets[left] & sets[right]), len(sets[left] | sets[right]))
        for left, right in combinations(range(len(documents)), 2)
        if documents.side_D[left] != documents.side_D[right]
        and sets[left] | sets[right]
        and len(sets[left] & sets[right]) >= params.jaccard * len(sets[left] | sets[right])
    }


def reported(documents: AuditDocuments, params: AuditParams) -> dict[tuple[int, int], tuple[int, int]]:
    near = near_duplicates(documents, params)
    sizes = zip(near.common_K.tolist(), near.union_K.tolist(), strict=True)
    return dict(zip(map(tuple, near.pair_K2.tolist()), sizes, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_planted_near_duplicates_are_found_and_nothing_else_is(planted: Planted, seed: int) -> None:
    documents = AuditDocuments.of(planted(seed))
    expected = pairs_by_sets(documents, PARAMS)
    assert len(expected) >= 5
    assert reported(documents, PARAMS) == expected


@pytest.mark.parametrize("seed", range(3))
def test_one_band_misses_pairs_and_invents_none(planted: Planted, seed: int) -> None:
    documents = AuditDocuments.of(planted(seed))
    weak = PARAMS.model_copy(update={"bands": 1, "band_rows": 2})
    assert reported(documents, weak).items() <= pairs_by_sets(documents, PARAMS).items()


def test_a_document_with_known_overlap_has_its_exact_similarity() -> None:
    ids = list(range(100, 203))  # a hundred shingles
    documents = made(
        ("a", Side.TEST, ids), ("b", Side.TRAIN, [*ids, 7, 8, 9]), ("c", Side.LANGUAGE, ids[:53])
    )
    near = near_duplicates(documents, PARAMS)
    assert near.pair_K2.tolist() == [[0, 1], [0, 2]]
    assert near.jaccard.tolist() == [100 / 103, 0.5]
    assert near.having(documents, SEEN).tolist() == [True, False, False]
    assert near.having(documents, [Side.TEST]).tolist() == [False, True, True]
    nearest, jaccard = near.nearest(documents, [Side.LANGUAGE])
    assert (nearest.tolist(), jaccard.tolist()) == ([2, -1, -1], [0.5, 0, 0])


def test_the_order_in_which_documents_come_changes_nothing(planted: Planted) -> None:
    rows = planted(9)
    order = np.random.default_rng(0).permutation(len(rows))
    documents, shuffled = AuditDocuments.of(rows), AuditDocuments.of([rows[at] for at in order])
    assert documents.names == shuffled.names
    assert (signatures(documents, PARAMS) == signatures(shuffled, PARAMS)).all()
    assert reported(documents, PARAMS) == reported(shuffled, PARAMS)


def test_a_signature_depends_on_its_own_document_and_on_the_seed(planted: Planted) -> None:
    rows = planted(4)
    alone = np.concatenate([signatures(AuditDocuments.of([row]), PARAMS) for row in rows])
    together = signatures(AuditDocuments.of(rows), PARAMS)
    assert (alone == together).all()
    assert (together == signatures(AuditDocuments.of(rows), PARAMS)).all()
    other = signatures(AuditDocuments.of(rows), PARAMS.model_copy(update={"seed": 14}))
    assert not (together == other)[[len(row[2]) >= 4 for row in rows]].any()


def test_signatures_agree_as_often_as_documents_are_similar() -> None:
    ids = list(range(1000, 1403))
    documents = made(("a", Side.TEST, ids), ("b", Side.TRAIN, [*ids[:300], *range(3000, 3100)]))
    common, union = common_shingles(documents, np.array([[0, 1]]), 4)
    many = signatures(documents, PARAMS.model_copy(update={"bands": 512, "band_rows": 8}))
    # 4,096 permutations: a standard deviation of .008
    assert (many[0] == many[1]).mean() == pytest.approx(common[0] / union[0], abs=0.03)


def test_pairs_far_below_the_threshold_are_not_compared_and_others_are() -> None:
    ids = list(range(1000, 1403))
    texts = [ids, [*ids[:350], *range(3000, 3050)], [*ids[:60], *range(4000, 4340)]]
    documents = made(*((f"d{n}", Side(n), text) for n, text in enumerate(texts)))
    pairs = np.array([[0, 1], [0, 2], [1, 2]])

    assert promising(signatures(documents, PARAMS), pairs, 0.5).tolist() == [True, False, False]
    few = PARAMS.model_copy(update={"bands": 4})
    assert promising(signatures(documents, few), pairs, 0.5).tolist() == [True] * 3


def test_many_copies_of_a_text_are_not_all_compared_with_each_other_and_all_are_told_of() -> None:
    rng = np.random.default_rng(3)
    text = rng.integers(0, 4000, 80)
    rows = [(f"d{n:04d}", Side(n % 4), [*text.tolist(), n + 5000]) for n in range(300)]
    documents = made(*rows)
    proposed = candidates(documents, signatures(documents, PARAMS), PARAMS)
    assert proposed.cut_buckets > 0
    all_pairs = np.count_nonzero(np.triu(documents.side_D[:, None] != documents.side_D))
    assert len(proposed.pair_K2) <= 1.1 * 300 * PARAMS.bucket_window < 0.7 * all_pairs
    assert near_duplicates(documents, PARAMS).having(documents, SEEN).sum() == 300


@given(st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 2), max_size=30), st.integers(1, 4))
def test_similarities_are_those_of_sets(left: list[int], right: list[int], n: int) -> None:
    documents = made(("a", Side.TEST, left), ("b", Side.TRAIN, right))
    common, union = common_shingles(documents, np.array([[0, 1]]), n)
    own, other = windows(left, n), windows(right, n)
    assert (common[0], union[0]) == (len(own & other), len(own | other))
    assert len(shingles(np.array(left, np.uint16), n)) == len(own)


def test_nothing_is_near_an_empty_document() -> None:
    near = near_duplicates(
        made(("a", Side.TEST, []), ("b", Side.TRAIN, []), ("c", Side.TRAIN, [5, 6])), PARAMS
    )
    assert len(near.pair_K2) == near.candidates == 0


def test_the_default_bands_miss_few_pairs_at_the_threshold() -> None:
    assert detection(PARAMS.jaccard, PARAMS) > 0.99
    assert detection(0.1, PARAMS) < 0.05
