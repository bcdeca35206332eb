"""Tasks cut from documents: a visible cue and the tokens that really follow it (FEM-ASM, addressing).

Cues and targets are the document's own token ids, never what a memory decodes to. Both kinds are
coordinate-assisted: their cues are cut from the evidence's own tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.params import EvaluationParams

PREFIX = "prefix_completion"
QUOTE = "quote_continuation"


@dataclass(frozen=True)
class AttachmentTask:
    """Continue `cue` (int64, C) by `target` (int64, T), which begins at token `offset` of `element`'s
    document.
    """

    name: str
    kind: str
    element: str
    offset: int
    cue: NDArray[np.int64]
    target: NDArray[np.int64]


def make_tasks(texts: Mapping[str, NDArray[np.integer]], params: EvaluationParams) -> list[AttachmentTask]:
    """Prefix completions and quote continuations from documents, given as ids by element name.

    Documents are taken in a random order, one prefix completion each; quote continuations then go round the
    documents at uniformly drawn places until `quote_tasks` or every document's cap is reached. Documents
    too short for a cue and a target are left out. Equal texts and parameters give equal tasks, sorted by
    name.
    """
    rng = np.random.default_rng([params.seed, 0])
    window = params.cue_tokens + params.target_tokens
    names = [name for name in sorted(texts) if len(texts[name]) >= window]
    order = [names[i] for i in rng.permutation(len(names))]
    tasks = [
        _task(PREFIX, name, params.cue_tokens, texts[name], params) for name in order[: params.prefix_tasks]
    ]
    taken = {task.element: {task.offset} for task in tasks}
    quotes: list[AttachmentTask] = []
    for _ in range(params.per_document):
        for name in order:
            used = taken.setdefault(name, set())
            if len(quotes) >= params.quote_tasks or len(used) >= params.per_document:
                continue
            offset = int(rng.integers(params.cue_tokens, len(texts[name]) - params.target_tokens + 1))
            if offset not in used:
                used.add(offset)
                quotes.append(_task(QUOTE, name, offset, texts[name], params))
    return sorted(tasks + quotes, key=lambda task: task.name)


def _task(
    kind: str, element: str, offset: int, ids: NDArray[np.integer], params: EvaluationParams
) -> AttachmentTask:
    return AttachmentTask(
        f"{element}/{kind}/{offset}",
        kind,
        element,
        offset,
        np.asarray(ids[offset - params.cue_tokens : offset], np.int64),
        np.asarray(ids[offset : offset + params.target_tokens], np.int64),
    )
