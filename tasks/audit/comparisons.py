"""What one part of the documents shares with another, as counts and shares."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import SEEN, WORKER, AuditDocuments, Side
from tasks.audit.duplicates import NearDuplicates
from tasks.audit.ngrams import SharedNgrams

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
