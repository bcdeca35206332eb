"""N-gram hashes name token runs, and winnowing keeps enough of them whatever stands beside an element."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.retrieval.hashing import inside, ngram_hashes, winnow

tokens = st.lists(st.integers(0, 3), max_size=60).map(lambda ids: np.array(ids, dtype=np.uint16))


@given(tokens, st.integers(1, 9))
def test_two_runs_have_one_hash_exactly_where_they_are_equal(ids: np.ndarray, n: int) -> None:
    hashes = ngram_hashes(ids, n).tolist()
    runs = [tuple(ids[at : at + n].tolist()) for at in range(len(ids) - n + 1)]
    assert len(hashes) == len(runs)
    assert len(set(zip(runs, hashes, strict=True))) == len(set(runs)) == len(set(hashes))


@given(tokens, st.integers(1, 9), st.integers(0, 20))
def test_a_hash_does_not_depend_on_what_stands_around_the_run(ids: np.ndarray, n: int, shift: int) -> None:
    around = np.concatenate([np.full(shift, 9), ids.astype(np.int64), np.full(shift, 9)])
    if len(ids) >= n:
        assert (
            ngram_hashes(around, n)[shift : shift + len(ids) - n + 1].tolist()
            == ngram_hashes(ids, n).tolist()
        )


@given(tokens, st.integers(1, 6), st.data())
def test_every_full_window_of_an_element_keeps_a_run(ids: np.ndarray, n: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, n))
    hashes = ngram_hashes(ids, n)
    kept = set(winnow(hashes, np.ones(len(hashes), dtype=bool), width).tolist())
    for begin in range(len(hashes) - width + 1):
        assert kept & set(range(begin, begin + width))


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30), st.integers(1, 9))
def test_what_is_kept_is_the_rightmost_minimum_of_some_window(
    hashed: list[tuple[int, bool]], width: int
) -> None:
    last = 2**64 - 1
    hashes = [last if value == 4 else value for value, _ in hashed]
    valid = [within for _, within in hashed]
    expected = set()
    for begin in range(1 - width, len(hashes)):
        window = [at for at in range(begin, begin + width) if 0 <= at < len(hashes) and valid[at]]
        expected |= {min(window, key=lambda at: (hashes[at], -at))} if window else set()
    kept = winnow(np.array(hashes, dtype=np.uint64), np.array(valid, dtype=bool), width)
    assert [at for at in kept.tolist() if hashes[at] != last] == sorted(
        at for at in expected if hashes[at] != last
    )


@given(st.lists(tokens, max_size=6), st.integers(1, 6), st.data())
def test_what_an_element_keeps_does_not_depend_on_its_neighbours(
    elements: list[np.ndarray], n: int, data: st.DataObject
) -> None:
    width = data.draw(st.integers(1, n))
    start = np.cumsum([0, *(len(ids) for ids in elements)])
    stream = np.concatenate([*elements, np.empty(0, dtype=np.uint16)])
    hashes = ngram_hashes(stream, n)
    together = winnow(hashes, inside(start, n)[: len(hashes)], width)
    alone = []
    for begin, ids in zip(start, elements, strict=False):
        own = ngram_hashes(ids, n)
        alone += (winnow(own, np.ones(len(own), dtype=bool), width) + begin).tolist()
    assert together.tolist() == alone


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(1, 9))
def test_a_run_is_inside_where_it_ends_before_its_element_does(lengths: list[int], n: int) -> None:
    expected = [at + n <= length for length in lengths for at in range(length)]
    assert inside(np.cumsum([0, *lengths]), n).tolist() == expected
