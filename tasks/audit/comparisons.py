"""What one part of the documents shares with another, as counts and shares."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import SEEN, WORKER, AuditDocuments, Side
from tasks.audit.duplicates import NearDuplicates
from tasks.audit.ngrams import SharedNgrams
from tasks.errors import BadPayload
from tasks.evaluation import Sample

TASKS = "tasks"
"""The documents that tasks were cut from, a part of the test side."""

_PAIRS: tuple[tuple[str, tuple[Side, ...], str, tuple[Side, ...]], ...] = (
    ("test", (Side.TEST,), "train", (Side.TRAIN,)),
    ("test", (Side.TEST,), "validation", (Side.VALIDATION,)),
    ("validation", (Side.VALIDATION,), "train", (Side.TRAIN,)),
    ("worker", WORKER, "language", (Side.LANGUAGE,)),
)


def compare(
    documents: AuditDocuments, shared: SharedNgrams, near: NearDuplicates, task_documents: Iterable[str]
) -> list[dict[str, Any]]:
    """A row for each direction of each pair of sides, and one for the tasks' documents against all that
    training and tuning saw."""
    names = set(task_documents)
    of_tasks = documents.on([Side.TEST]) & np.array([name in names for name in documents.names], bool)
    rows = []
    for left, left_sides, right, right_sides in _PAIRS:
        rows.append(_row(documents, shared, near, left, documents.on(left_sides), right, right_sides))
        rows.append(_row(documents, shared, near, right, documents.on(right_sides), left, left_sides))
    rows.append(_row(documents, shared, near, TASKS, of_tasks, "seen", SEEN))
    return rows


def compare_evidence(
    samples: Sequence[Sample], documents: AuditDocuments, near: NearDuplicates
) -> list[dict[str, Any]]:
    """A row for each condition that shows evidence: how much of it training or tuning saw.

    `trained` and `validation` count tasks whose evidence is a memory of these sides, `near_duplicates` those
    whose evidence is on the test side and has a near-duplicate in what training or tuning saw. Raises
    BadPayload where evidence is no memory of the snapshot.
    """
    worker, near_D = documents.on(WORKER), near.having(documents, SEEN)
    place = {documents.names[number]: number for number in np.flatnonzero(worker).tolist()}
    if strangers := {sample.evidence for sample in samples} - place.keys() - {""}:
        raise BadPayload(
            f"a sample of the evaluation shows {min(strangers)}, which is no memory of its snapshot; "
            "evaluate again"
        )
    rows = []
    for condition in dict.fromkeys(sample.condition for sample in samples if sample.evidence):
        shown = [place[s.evidence] for s in samples if s.condition == condition and s.evidence]
        side_T = documents.side_D[shown]
        rows.append(
            {
                "condition": condition,
                "tasks": len(shown),
                "trained": int((side_T == Side.TRAIN).sum()),
                "validation": int((side_T == Side.VALIDATION).sum()),
                "near_duplicates": int((near_D[shown] & (side_T == Side.TEST)).sum()),
            }
        )
    return rows


def _row(
    documents: AuditDocuments,
    shared: SharedNgrams,
    near: NearDuplicates,
    of: str,
    of_D: NDArray[np.bool_],
    against: str,
    sides: tuple[Side, ...],
) -> dict[str, Any]:
    distinct, common = shared.distinct[of_D], shared.shared_with(sides)[of_D]
    share = common[distinct > 0] / distinct[distinct > 0]
    duplicated = near.having(documents, sides)[of_D]
    return {
        "of": of,
        "against": against,
        "documents": int(of_D.sum()),
        "against_documents": int(documents.on(sides).sum()),
        "tokens": int(documents.lengths[of_D].sum()),
        "without_ngrams": int((distinct == 0).sum()),
        "with_shared_ngram": int((common > 0).sum()),
        "with_half_shared": int((2 * common >= np.maximum(distinct, 1)).sum()),
        "ngrams": int(distinct.sum()),
        "shared_ngrams": int(common.sum()),
        "mean_shared_share": float(share.mean()) if len(share) else 0.0,
        "near_duplicates": int(duplicated.sum()),
    }
