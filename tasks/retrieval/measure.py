"""How good and how fast a search is, on cues whose source is known (FEM-ASM, addressing).

Two credits, always side by side. *Named*: the candidate is the very element that the cue was cut from.
*Same text* (the figures without a suffix): it is that element, or its own text holds the cue at the aligned
offset together with the same answer, after it or in its gap; a passage that several documents share has
several right answers.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.errors import BadQuery
from tasks.retrieval.cues import NO_TOKEN
from tasks.retrieval.index import Candidate
from tasks.retrieval.tasks import CueTask


class Searcher(Protocol):
    """Anything that answers cues with ordered candidates: an `Index` or a baseline."""

    def search(self, cue_ids: np.ndarray, k: int) -> list[Candidate]: ...

    def search_many(self, cues: Sequence[np.ndarray], k: int) -> list[list[Candidate]]: ...


@dataclass(frozen=True)
class RetrievalFigures:
    """Shares in [0, 1], rates in queries per second (batched), latencies in milliseconds (one query at a
    time).

    `aligned_at_1` is the share whose first candidate is named right *and* points exactly to the
    continuation.
    """

    tasks: int
    candidate_recall: float
    candidate_recall_named: float
    recall_at_1: float
    recall_at_1_named: float
    aligned_at_1: float
    queries_per_second: float
    p50_ms: float
    p99_ms: float


def evaluate(
    searcher: Searcher,
    tasks: Sequence[CueTask],
    texts: Mapping[str, np.ndarray],
    *,
    cues: Sequence[np.ndarray] | None = None,
    candidates: int = 64,
    timed_queries: int = 500,
) -> RetrievalFigures:
    """Score a searcher on tasks.

    `texts` are the token ids that same-text credit is judged on, by element name: the documents' own where
    they are at hand (decoding errors then count against nobody), or the readout's. `cues` replaces the
    tasks' cues by what is really asked, for example corrupted ones. `candidates` bounds the candidates that
    may count for candidate recall. Raises BadQuery without tasks.
    """
    if not tasks:
        raise BadQuery("there is no task to measure retrieval on; give longer or more documents")
    asked = [task.cue for task in tasks] if cues is None else list(cues)
    started = time.perf_counter()
    answers = searcher.search_many(asked, candidates)
    elapsed = time.perf_counter() - started
    milliseconds = []
    for cue in asked[:timed_queries]:
        begun = time.perf_counter()
        searcher.search(cue, candidates)
        milliseconds.append(1000 * (time.perf_counter() - begun))
    pairs = list(zip(answers, tasks, strict=True))
    return RetrievalFigures(
        tasks=len(tasks),
        candidate_recall=_share(any(is_right(c, task, texts) for c in found) for found, task in pairs),
        candidate_recall_named=_share(any(c.name == task.name for c in found) for found, task in pairs),
        recall_at_1=_share(any(is_right(c, task, texts) for c in found[:1]) for found, task in pairs),
        recall_at_1_named=_share(any(c.name == task.name for c in found[:1]) for found, task in pairs),
        aligned_at_1=_share(
            any(c.name == task.name and c.offset == task.offset for c in found[:1]) for found, task in pairs
        ),
        queries_per_second=len(tasks) / elapsed,
        p50_ms=float(np.percentile(milliseconds, 50)),
        p99_ms=float(np.percentile(milliseconds, 99)),
    )


def is_right(candidate: Candidate, task: CueTask, texts: Mapping[str, np.ndarray]) -> bool:
    """Whether the candidate is the task's element, or holds its cue and answer where it says."""
    if candidate.name == task.name:
        return True
    begin = candidate.offset - len(task.cue)
    if begin < 0 or candidate.name not in texts:
        return False
    passage = texts[candidate.name][begin : candidate.offset + len(task.continuation)]
    return np.array_equal(passage, task.passage)


def holds_cue(candidate: Candidate, task: CueTask, texts: Mapping[str, np.ndarray]) -> bool:
    """Whether the candidate is the task's element, or holds its cue where it says, whatever the answer there.

    Nothing in a cue that stands word for word in several elements tells their answers apart.
    """
    if candidate.name == task.name:
        return True
    begin = candidate.offset - len(task.cue)
    if begin < 0 or candidate.name not in texts:
        return False
    known = task.cue != NO_TOKEN
    passage = texts[candidate.name][begin : candidate.offset]
    return len(passage) == len(known) and np.array_equal(passage[known], task.cue[known])


def _share(outcomes: Iterable[bool]) -> float:
    return float(np.mean(list(outcomes)))
