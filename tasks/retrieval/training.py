"""Labelled alignments for the reranker: cues from train-split elements, looked up in the index itself."""

import numpy as np

from tasks.corpus import element_split
from tasks.errors import BadCorpus
from tasks.retrieval.alignment import Alignments
from tasks.retrieval.cues import corrupted
from tasks.retrieval.features import FEATURES
from tasks.retrieval.index import Index
from tasks.retrieval.params import RerankerParams
from tasks.retrieval.reranker import Examples
from tasks.retrieval.tasks import CueTask, prefix_tasks, quote_tasks

_BATCH = 128


def labelled_alignments(index: Index, params: RerankerParams) -> Examples:
    """Examples from drawn cues: half of them begin a block, half come from anywhere.

    Cues of every length in `cue_tokens` are cut from the readout of train-split elements and changed at
    every rate in `corruption`. An alignment is right where the element continues with the cue's own
    continuation, whichever element it is: equal text is an equal answer. Raises BadCorpus where no
    train-split element is long enough.
    """
    generator = np.random.default_rng(params.seed)
    texts = {
        name: index.readout.tokens(row)
        for row, name in enumerate(index.readout.names)
        if element_split(name) == "train"
    }
    parts = []
    kinds = [(length, share) for length in params.cue_tokens for share in params.corruption]
    for length, share in kinds:
        count = -(-params.cues // (2 * len(kinds)))
        span = {"cue_tokens": length, "continuation_tokens": params.continuation_tokens}
        stride = index.sources.charts.params.prefix_stride
        tasks = quote_tasks(texts, count=count, **span, generator=generator)
        tasks += prefix_tasks(texts, count=count, **span, block_tokens=stride, generator=generator)
        cues = [corrupted(task.cue, share, index.vocab_size, generator) for task in tasks]
        for begin in range(0, len(tasks), _BATCH):
            rows = slice(begin, begin + _BATCH)
            parts.append(_examples(index, cues[rows], tasks[rows], params.candidates))
    if not parts:
        raise BadCorpus(
            "no element of the train split is long enough to draw a cue from; build more memories first"
        )
    return Examples(
        np.concatenate([part.features_QKF for part in parts]),
        np.concatenate([part.right_QK for part in parts]),
        np.concatenate([part.present_QK for part in parts]),
    )


def _examples(index: Index, cues: list[np.ndarray], tasks: list[CueTask], limit: int) -> Examples:
    batch = index.batch(cues)
    evidence = index.evidence(batch)
    found, features_AF = evidence.alignments, evidence.features_AF
    right_A = _continues_alike(index, found, evidence.verified.offset_A, tasks)
    agreement_A = features_AF[:, FEATURES.index("agreement")]
    order = np.lexsort((found.diagonal_A, found.element_A, -agreement_A, found.query_A))
    query_A = found.query_A[order]
    place_A = np.arange(len(order)) - np.searchsorted(query_A, query_A)
    closest = place_A < limit
    cell = (query_A[closest], place_A[closest])
    features_QKF = np.zeros((len(batch), limit, len(FEATURES)))
    right_QK, present_QK = np.zeros((2, len(batch), limit), dtype=bool)
    features_QKF[cell] = features_AF[order[closest]]
    right_QK[cell] = right_A[order[closest]]
    present_QK[cell] = True
    return Examples(features_QKF, right_QK, present_QK)


def _continues_alike(
    index: Index, found: Alignments, offset_A: np.ndarray, tasks: list[CueTask]
) -> np.ndarray:
    """Whether the element's tokens at the offset are those that continue the cue."""
    continuation_QT = np.stack([task.continuation for task in tasks]).astype(np.int64)
    start_A = index.readout.start_E1[found.element_A] + offset_A
    position_AT = start_A[:, None] + np.arange(continuation_QT.shape[1])
    inside_AT = position_AT < index.readout.start_E1[found.element_A + 1][:, None]
    stored_AT = index.readout.tokens_N[np.where(inside_AT, position_AT, 0)]
    alike_A: np.ndarray = (inside_AT & (stored_AT == continuation_QT[found.query_A])).all(1)
    return alike_A
