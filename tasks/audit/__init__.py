"""Leakage audit: text that parts of an experiment share, and scores without the tasks that it touches."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.audit.comparisons import compare, compare_evidence
    from tasks.audit.documents import SEEN, WORKER, AuditDocuments, Side
    from tasks.audit.duplicates import NearDuplicates, near_duplicates
    from tasks.audit.jaccard import common_shingles, shingles
    from tasks.audit.minhash import Candidates, candidates, detection, promising, signatures
    from tasks.audit.ngrams import SharedNgrams, shared_ngrams
    from tasks.audit.params import AuditParams
    from tasks.audit.records import (
        AuditedDocument,
        AuditedSample,
        Exposure,
        NearDuplicate,
        load_audited,
        load_documents,
        load_pairs,
    )
    from tasks.audit.rescoring import VARIANTS, rescore
    from tasks.audit.step import audit_evaluation, audit_of, audit_recipe

__all__ = [
    "SEEN",
    "VARIANTS",
    "WORKER",
    "AuditDocuments",
    "AuditParams",
    "AuditedDocument",
    "AuditedSample",
    "Candidates",
    "Exposure",
    "NearDuplicate",
    "NearDuplicates",
    "SharedNgrams",
    "Side",
    "audit_evaluation",
    "audit_of",
    "audit_recipe",
    "candidates",
    "common_shingles",
    "compare",
    "compare_evidence",
    "detection",
    "load_audited",
    "load_documents",
    "load_pairs",
    "near_duplicates",
    "promising",
    "rescore",
    "shared_ngrams",
    "shingles",
    "signatures",
]

export_lazily(__name__)
