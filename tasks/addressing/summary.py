"""From samples to one table with intervals: kind, share of changed tokens, searcher."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.addressing.params import AddressingParams
from tasks.addressing.samples import COORDINATES, AddressingSample
from tasks.evaluation import interval, resampled_means

ALL = "all"
DETERMINED = "determined"
"""Tasks of all kinds whose cue no other element holds with another answer."""
FIGURES: dict[str, Callable[[AddressingSample], float]] = {
    "candidate_recall": lambda s: s.rank > 0,
    "candidate_recall_named": lambda s: s.rank_named > 0,
    "recall_at_1": lambda s: s.rank == 1,
    "recall_at_1_named": lambda s: s.rank_named == 1,
    "recall_at_1_cue": lambda s: s.rank_cue == 1,
    "aligned_at_1": lambda s: s.aligned,
}
_COMPARED = ("candidate_recall", "recall_at_1")


def summarise(samples: Sequence[AddressingSample], params: AddressingParams) -> dict[str, Any]:
    """Shares of tasks with intervals over documents, by kind, share of changed tokens and searcher.

    A figure without suffix counts an element that holds the same text as right, its `_named` twin only the
    one that the cue was cut from, its `_cue` twin any that holds the same cue, whatever the answer. Rows of
    kind `all` are over the tasks of all kinds, those of kind `determined` over them without the `ambiguous`
    ones, whose cue another element holds word for word with another answer. `margins` are the first
    searcher's figures less another's on the same tasks. Every searcher must have been asked every task at
    every share.
    """
    searchers = list(dict.fromkeys(sample.searcher for sample in samples))
    shares = sorted({sample.corruption for sample in samples})
    first = [s for s in samples if (s.searcher, s.corruption) == (searchers[0], shares[0])]
    kinds = list(dict.fromkeys(s.kind for s in first))
    table: list[dict[str, Any]] = []
    margins: list[dict[str, Any]] = []
    for kind in (*kinds, ALL, DETERMINED):
        chosen = [s for s in samples if _is_of(s, kind)]
        if not chosen:
            continue
        rows, less = _kind(chosen, searchers, shares, params)
        table += [{"kind": kind, **row} for row in rows]
        margins += [{"kind": kind, **row} for row in less]
    return {
        "protocol": COORDINATES,
        "tasks": len(first),
        "documents": len({s.element for s in first}),
        "ambiguous": sum(s.rivals > 0 for s in first),
        "kinds": {kind: sum(s.kind == kind for s in first) for kind in kinds},
        "searchers": searchers,
        "table": table,
        "margins": margins,
    }


def _is_of(sample: AddressingSample, kind: str) -> bool:
    if kind == DETERMINED:
        return sample.rivals == 0
    return kind in (ALL, sample.kind)


def _kind(
    samples: Sequence[AddressingSample],
    searchers: Sequence[str],
    shares: Sequence[float],
    params: AddressingParams,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of one kind; one resample of documents serves all of them, so that they are paired."""
    cells = [(share, searcher) for share in shares for searcher in searchers]
    groups: dict[tuple[float, str], list[AddressingSample]] = {cell: [] for cell in cells}
    for sample in sorted(samples, key=lambda s: s.task):
        groups[sample.corruption, sample.searcher].append(sample)
    asked = groups[cells[0]]
    assert all([s.task for s in group] == [s.task for s in asked] for group in groups.values())
    value_NK = np.concatenate([_values(groups[cell]) for cell in cells], axis=1)
    _, cluster_N = np.unique([s.element for s in asked], return_inverse=True)
    drawn_RK = resampled_means(
        value_NK,
        cluster_N.astype(np.int64),
        resamples=params.resamples,
        generator=np.random.default_rng([params.seed, 100]),
    )
    mean_K = value_NK.mean(0)
    column = {
        (*cell, name): place * len(FIGURES) + row
        for place, cell in enumerate(cells)
        for row, name in enumerate(FIGURES)
    }

    def shown(value: float, drawn_R: NDArray[np.float64]) -> dict[str, float]:
        return asdict(interval(value, drawn_R, params.confidence))

    table = [
        {
            "corruption": share,
            "searcher": searcher,
            "tasks": len(asked),
            **{
                name: shown(mean_K[at], drawn_RK[:, at])
                for name in FIGURES
                for at in (column[share, searcher, name],)
            },
        }
        for share, searcher in cells
    ]
    ours, *others = searchers
    margins = [
        {
            "corruption": share,
            "over": other,
            **{
                name: shown(mean_K[at] - mean_K[than], drawn_RK[:, at] - drawn_RK[:, than])
                for name in _COMPARED
                for at, than in ((column[share, ours, name], column[share, other, name]),)
            },
        }
        for share in shares
        for other in others
    ]
    return table, margins


def _values(samples: Sequence[AddressingSample]) -> NDArray[np.float64]:
    return np.array([[float(value(s)) for value in FIGURES.values()] for s in samples])
