"""A cue is laid over an element where its single tokens weigh most."""

import numpy as np

from tasks.retrieval import Index, quote_tasks
from tasks.retrieval.alignment import locate


def _best_diagonal(index: Index, cue: np.ndarray, element: int) -> int:
    """The same, diagonal by diagonal; the last place of a repeated token counts."""
    tokens, start = index.readout.tokens(element), int(index.readout.start_E1[element])
    idf_V = index.sources.charts.bag.idf_V
    column = {int(token): place for place, token in enumerate(cue)}
    mass: dict[int, float] = {}
    for position, token in enumerate(tokens.tolist()):
        if token in column:
            diagonal = position - column[token]
            mass[diagonal] = mass.get(diagonal, 0.0) + float(idf_V[token] + 1e-3)
    if not mass:
        return start - len(cue)
    most = max(mass.values())
    return start + min(diagonal for diagonal, weight in mass.items() if weight == most)


def test_single_tokens_are_weighed_diagonal_by_diagonal(index: Index, ids: dict[str, np.ndarray]) -> None:
    draw = np.random.default_rng(3)
    tasks = quote_tasks(ids, count=6, cue_tokens=12, continuation_tokens=1, generator=draw)
    cues = [*(task.cue.astype(np.int64) for task in tasks), np.array([599]), np.array([7, 7, 7])]
    query_P = np.repeat(np.arange(len(cues)), 15)
    element_P = draw.integers(len(index.readout), size=len(query_P))
    found = locate(index.batch(cues), query_P, element_P, index.sources.charts, index.readout)
    expected = [_best_diagonal(index, cues[q], e) for q, e in zip(query_P, element_P, strict=True)]
    assert found.diagonal_A.tolist() == expected


def test_no_pair_has_no_alignment(index: Index) -> None:
    none = np.empty(0, dtype=np.int64)
    assert len(locate(index.batch([np.array([5])]), none, none, index.sources.charts, index.readout)) == 0
