"""Elements that hold a task's cue word for word with another answer: nobody who sees the cue can tell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tasks.retrieval import NO_TOKEN, CueTask, ngram_hashes


def rival_counts(tasks: Sequence[CueTask], texts: Mapping[str, np.ndarray]) -> list[int]:
    """How many other elements hold each task's cue word for word, and nowhere its answer with it.

    `texts` are the token ids of all elements by name. The cue's gap may hold anything. Exact: places are
    proposed by the hash of the tokens before the gap, and then compared token by token.
    """
    names = sorted(texts)
    start_E1 = np.concatenate([[0], np.cumsum([len(texts[name]) for name in names], dtype=np.int64)])
    tokens_N = np.concatenate([*(texts[name].astype(np.int64) for name in names), np.empty(0, np.int64)])
    opening = [_opening(task.cue) for task in tasks]
    counts = [0] * len(tasks)
    for length in set(opening):
        hashes_M = ngram_hashes(tokens_N, length)
        order_M = np.argsort(hashes_M, kind="stable")
        sorted_M = hashes_M[order_M]
        for row in (row for row, own in enumerate(opening) if own == length):
            [key] = ngram_hashes(tasks[row].cue[:length], length)
            begin, end = (int(np.searchsorted(sorted_M, key, side)) for side in ("left", "right"))
            holders = _holders(tasks[row], order_M[begin:end], tokens_N, start_E1)
            counts[row] = sum(not right and names[element] != tasks[row].name for element, right in holders)
    return counts


def _opening(cue: np.ndarray) -> int:
    """How many known tokens a cue begins with."""
    unknown = np.flatnonzero(cue == NO_TOKEN)
    return int(unknown[0]) if len(unknown) else len(cue)


def _holders(
    task: CueTask, position_H: np.ndarray, tokens_N: np.ndarray, start_E1: np.ndarray
) -> list[tuple[int, bool]]:
    """The elements that hold the cue at some of these positions, each with whether its answer is there."""
    known = task.cue != NO_TOKEN
    holds: defaultdict[int, bool] = defaultdict(bool)
    element_H = np.searchsorted(start_E1, position_H, side="right") - 1
    for position, element in zip(position_H.tolist(), element_H.tolist(), strict=True):
        passage = tokens_N[position : min(start_E1[element + 1], position + len(task.passage))]
        if len(passage) >= len(known) and np.array_equal(passage[: len(known)][known], task.cue[known]):
            holds[element] |= np.array_equal(passage, task.passage)
    return list(holds.items())
