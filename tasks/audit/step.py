"""The audit room's door to the store: what an evaluation's documents share with what training saw."""

import time
from collections.abc import Sequence
from typing import Any

from store import Recipe, Ref, Row, Store
from tasks.audit.comparisons import compare, compare_evidence
from tasks.audit.documents import AuditDocuments, Side
from tasks.audit.duplicates import NearDuplicates, near_duplicates
from tasks.audit.minhash import detection
from tasks.audit.ngrams import SharedNgrams, shared_ngrams
from tasks.audit.params import AuditParams
from tasks.audit.records import (
    AuditedDocument,
    AuditedSample,
    NearDuplicate,
    audited_samples,
    document_records,
    exposures,
    pair_records,
)
from tasks.audit.rescoring import rescore
from tasks.audit.subject import Subject
from tasks.corpus import is_worker_shard
from tasks.errors import BadPayload
from tasks.evaluation import (
    PublishedEvaluation,
    SubjectName,
    Table,
    find_evaluation,
    newest_evaluation,
    peak_rss_bytes,
    publish_evaluation,
)
from tasks.progress import Progress, silent
from tasks.tables import encode_records

RECIPE = "audit.leakage/1"
SUBJECT: SubjectName = "audit"


def audit_evaluation(
    store: Store,
    params: AuditParams,
    *,
    evaluation: Ref,
    corpus: Sequence[Ref],
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Audit the documents behind an evaluation of attachments, or find the audit published.

    `corpus` are the shards that the memories of its snapshot were built from; the shards that core and codec
    learned from are those that their records name. Publishes `evaluation/<name>` (the summary as JSON: a row
    for each pair of sides, scores with and without near-duplicates) and below it the tables `pairs`,
    `documents` and `samples`. The evaluation itself stays as it is. `progress` is in percent.

    Raises `StaleInputs` for an evaluation that the store does not say enough about, `TooLittleText` when the
    shards lack documents of the snapshot's memories.
    """
    subject = Subject.open(store, evaluation)
    shards = sorted((ref for ref in corpus if is_worker_shard(ref)), key=lambda ref: (ref.name, ref.version))
    recipe = audit_recipe(params, evaluation, shards, subject.language).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    began = time.perf_counter()
    documents = AuditDocuments.of(subject.documents(store, shards, _part(progress, 0)))
    read_s = time.perf_counter() - began
    shared = shared_ngrams(documents, params.ngram_tokens, progress=_part(progress, 1))
    ngrams_s = time.perf_counter() - began - read_s
    near = near_duplicates(documents, params, _part(progress, 2))
    costs = {
        "seconds": {
            "read": read_s,
            "ngrams": ngrams_s,
            "near_duplicates": time.perf_counter() - began - read_s - ngrams_s,
        },
        "peak_rss_bytes": peak_rss_bytes(),
    }
    summary, tables = _measure(params, subject, documents, shared, near)
    return publish_evaluation(
        store,
        params.name,
        summary,
        tables,
        recipe=recipe,
        requires=(subject.row.version,),
        provenance={
            "subject": SUBJECT,
            "params": params.model_dump(mode="json"),
            "evaluation": str(subject.row.ref),
        },
        costs=costs,
        message=f"Audit {subject.row.name}: {summary['near_duplicate_pairs']} pairs of near-duplicates",
    )


def audit_recipe(
    params: AuditParams, evaluation: Ref, corpus: Sequence[Ref], language: Sequence[Ref]
) -> Recipe:
    """How the audit of an evaluation is made with worker shards and with the language shards learned from."""
    shards = sorted({ref.version for ref in (*corpus, *language)})
    return Recipe(RECIPE, params.model_dump(mode="json"), (evaluation.version, *shards))


def _part(progress: Progress, place: int) -> Progress:
    """Progress of one of three parts of equal weight, in percent of the whole."""

    def report(done: int, total: int, **figures: float) -> None:
        progress((100 * place + 100 * done // max(1, total)) // 3, 100)

    return report


def _measure(
    params: AuditParams,
    subject: Subject,
    documents: AuditDocuments,
    shared: SharedNgrams,
    near: NearDuplicates,
) -> tuple[dict[str, Any], dict[str, Table]]:
    """The summary, and the tables by name."""
    found = exposures(documents, shared, near)
    samples = audited_samples(subject.samples, found)
    evaluated = {sample.element for sample in samples}
    summary = {
        "evaluation": str(subject.row.ref),
        "settings": params.model_dump(mode="json"),
        "documents": {side.label: int(documents.on([side]).sum()) for side in Side},
        "tokens": {side.label: int(documents.lengths[documents.on([side])].sum()) for side in Side},
        "comparisons": compare(documents, shared, near, evaluated),
        "evidence": compare_evidence(subject.samples, documents, near),
        "near_duplicate_pairs": len(near.pair_K2),
        "candidate_pairs": near.candidates,
        "compared_pairs": near.compared,
        "cut_buckets": near.cut_buckets,
        "found_at_threshold": detection(params.jaccard, params),
        "scores": rescore(samples, subject.settings),
    }
    tables = {
        "pairs": _table("pairs", NearDuplicate, pair_records(documents, near)),
        "documents": _table("documents", AuditedDocument, document_records(documents, shared, near)),
        "samples": _table("samples", AuditedSample, samples),
    }
    return summary, tables


def _table(name: str, kind: type[Any], records: Sequence[Any]) -> Table:
    return Table(encode_records(kind, records), len(records), f"audit.{name}/1")


def audit_of(store: Store, evaluation: Ref) -> tuple[Row, dict[str, Any]] | None:
    """The newest audit of an evaluation and its summary, None if there is none.

    Raises BadPayload for one that is no summary.
    """
    found = newest_evaluation(store, SUBJECT, evaluation=str(evaluation))
    if found is None:
        return None
    row, summary = found
    if not isinstance(summary.get("scores"), dict) or not isinstance(summary.get("comparisons"), list):
        raise BadPayload(f"{row.ref} is no audit of an evaluation; run `cellar eval run audit`")
    return row, summary
