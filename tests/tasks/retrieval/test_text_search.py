"""Elements found by text alone."""

import numpy as np

from tasks.corpus import Tokenizer
from tasks.retrieval import Index, TextSearch


def test_a_text_finds_its_element_by_name_and_an_invisible_one_finds_nothing(
    index: Index, tokenizer: Tokenizer
) -> None:
    search = TextSearch.over(index, tokenizer, scrambled=50, generator=np.random.default_rng(0))
    rows = (4, 0)
    asked = [tokenizer.decode(index.readout.tokens(row)[20:60]) for row in rows]

    first, nothing, second = search.elements([asked[0], " \n", asked[1]], 3)

    assert [first[0], second[0]] == [index.readout.names[row] for row in rows]
    assert nothing == []
    assert len(set(first)) == 3
    assert search.elements(asked[1:], 3) == [second]
