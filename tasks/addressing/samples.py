"""Per-sample results of addressing: one row for each task, share of changed tokens and searcher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.retrieval import Candidate, CueTask, holds_cue, is_right

COORDINATES = "coordinate-assisted"
"""The protocol whose cues are cut from the evidence's own tokens; never reported with question-only."""


@dataclass(frozen=True)
class AddressingSample:
    """One cue, asked of one searcher.

    `element` is the one that the cue was cut from, `offset` the token of it right after the cue. `corruption`
    is the share of known tokens to change, `changed` how many were. `rivals` counts the other elements that
    hold the unchanged cue word for word with another answer. Of the `candidates` found `rank` is the place
    (from 1) of the first that is right with same-text credit, `rank_named` that of the very element,
    `rank_cue` that of the first with the same cue, whatever answer follows; 0 where there is none. `best` and
    `best_offset` are what stands first ("" and 0 for nothing), `aligned` whether that is the very element, at
    the very offset.
    """

    task: str
    kind: str
    protocol: str
    element: str
    offset: int
    corruption: float
    changed: int
    rivals: int
    searcher: str
    candidates: int
    rank: int
    rank_named: int
    rank_cue: int
    best: str
    best_offset: int
    aligned: bool
    cue: str
    answer: str


@dataclass(frozen=True)
class Asked:
    """A task as it is asked: with its name, kind and number of rivals, its changed cue, and its texts."""

    name: str
    kind: str
    task: CueTask
    rivals: int
    corruption: float
    cue: np.ndarray
    cue_text: str
    answer_text: str


def judge(
    asked: Asked, searcher: str, found: Sequence[Candidate], texts: Mapping[str, np.ndarray]
) -> AddressingSample:
    """Compare what a searcher found with what is right; `texts` decide what the same text is."""
    task = asked.task
    best = found[0] if found else None
    return AddressingSample(
        task=asked.name,
        kind=asked.kind,
        protocol=COORDINATES,
        element=task.name,
        offset=task.offset,
        corruption=asked.corruption,
        changed=int((asked.cue != task.cue).sum()),
        rivals=asked.rivals,
        searcher=searcher,
        candidates=len(found),
        rank=_first([is_right(candidate, task, texts) for candidate in found]),
        rank_named=_first([candidate.name == task.name for candidate in found]),
        rank_cue=_first([holds_cue(candidate, task, texts) for candidate in found]),
        best=best.name if best else "",
        best_offset=best.offset if best else 0,
        aligned=best is not None and (best.name, best.offset) == (task.name, task.offset),
        cue=asked.cue_text,
        answer=asked.answer_text,
    )


def _first(right: Sequence[bool]) -> int:
    return right.index(True) + 1 if True in right else 0
