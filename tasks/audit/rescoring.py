"""Scores of an evaluation with and without the tasks whose documents share text with what training saw."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasks.audit.records import AuditedSample
from tasks.evaluation import EvaluationParams, summarise

ALL = "all"
WITHOUT_NEAR_DUPLICATES = "without_near_duplicates"
WITHOUT_SHARED_NGRAMS = "without_shared_ngrams"

VARIANTS: Mapping[str, Callable[[AuditedSample], bool]] = {
    ALL: lambda sample: True,
    WITHOUT_NEAR_DUPLICATES: lambda sample: not sample.near_duplicate,
    WITHOUT_SHARED_NGRAMS: lambda sample: not sample.near_duplicate and not sample.seen_ngrams,
}
"""Which tasks remain, the strictest last."""

_KEPT = ("tasks", "documents", "target_tokens", "kinds", "conditions", "gain")


def rescore(samples: Sequence[AuditedSample], params: EvaluationParams) -> dict[str, Any]:
    """Figures with document-clustered intervals of each variant, as `tasks.evaluation.summarise` makes them.

    `params` are those of the evaluation, so that the figures of all tasks equal its own. A variant that
    leaves no task is null.
    """
    found: dict[str, Any] = {}
    for name, remains in VARIANTS.items():
        kept = [sample for sample in samples if remains(sample)]
        figures = summarise(kept, params) if kept else None
        found[name] = None if figures is None else {key: figures[key] for key in _KEPT}
    return found
