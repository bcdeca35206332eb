"""The audit's tables: pairs, documents and the evaluation's samples with what their documents share."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from tasks.audit.documents import SEEN, AuditDocuments, Side
from tasks.audit.duplicates import NearDuplicates
from tasks.audit.ngrams import SharedNgrams
from tasks.errors import BadPayload
from tasks.evaluation import Sample
from tasks.tables import load_records


@dataclass(frozen=True)
class NearDuplicate:
    """Two documents on different sides; `common` of the `all_shingles` of both are in both."""

    left: str
    left_side: str
    right: str
    right_side: str
    jaccard: float
    common: int
    all_shingles: int


@dataclass(frozen=True)
class AuditedDocument:
    """A document and what it shares.

    `ngrams` counts its distinct n-grams, `in_<side>` those that the documents of a side hold (zero for its
    own side), and `in_seen` those that anything holds that training or tuning saw (test side only).
    `nearest` is its most similar near-duplicate on another side, "" for none.
    """

    document: str
    side: str
    tokens: int
    ngrams: int
    in_language: int
    in_train: int
    in_validation: int
    in_test: int
    in_seen: int
    nearest: str
    nearest_side: str
    jaccard: float


@dataclass(frozen=True)
class Exposure:
    """What a test-side document shares with text that training or tuning saw.

    `near_duplicate` tells whether it has a near-duplicate there: `nearest`, on `nearest_side`, with the
    similarity `jaccard`. `seen_ngrams` of its `ngrams` distinct n-grams stand there.
    """

    near_duplicate: bool
    nearest: str
    nearest_side: str
    jaccard: float
    ngrams: int
    seen_ngrams: int


@dataclass(frozen=True)
class AuditedSample(Exposure, Sample):
    """A sample of an evaluation, its own columns first, with the exposure of its task's document."""


def pair_records(documents: AuditDocuments, near: NearDuplicates) -> list[NearDuplicate]:
    """The pairs by name of the first and of the second document."""
    return [
        NearDuplicate(
            documents.names[left],
            Side(documents.side_D[left]).label,
            documents.names[right],
            Side(documents.side_D[right]).label,
            common / union,
            common,
            union,
        )
        for (left, right), common, union in zip(
            near.pair_K2.tolist(), near.common_K.tolist(), near.union_K.tolist(), strict=True
        )
    ]


def document_records(
    documents: AuditDocuments, shared: SharedNgrams, near: NearDuplicates
) -> list[AuditedDocument]:
    """One record for each document, by name and side."""
    counted = {side: shared.shared_with([side]) for side in Side}
    seen_D, distinct_D = shared.shared_with(SEEN), shared.distinct
    nearest_D, jaccard_D = near.nearest(documents, Side)
    found = []
    for number, name in enumerate(documents.names):
        own, other = Side(documents.side_D[number]), int(nearest_D[number])
        columns = {f"in_{s.label}": 0 if s is own else int(counted[s][number]) for s in Side}
        found.append(
            AuditedDocument(
                document=name,
                side=own.label,
                tokens=int(documents.lengths[number]),
                ngrams=int(distinct_D[number]),
                **columns,
                in_seen=int(seen_D[number]) if own is Side.TEST else 0,
                nearest=documents.names[other] if other >= 0 else "",
                nearest_side=Side(documents.side_D[other]).label if other >= 0 else "",
                jaccard=float(jaccard_D[number]),
            )
        )
    return found


def exposures(documents: AuditDocuments, shared: SharedNgrams, near: NearDuplicates) -> dict[str, Exposure]:
    """The exposure of every document on the test side, by name."""
    nearest_D, jaccard_D = near.nearest(documents, SEEN)
    seen_D, distinct_D = shared.shared_with(SEEN), shared.distinct
    return {
        documents.names[number]: Exposure(
            near_duplicate=bool(nearest_D[number] >= 0),
            nearest=documents.names[nearest_D[number]] if nearest_D[number] >= 0 else "",
            nearest_side=Side(documents.side_D[nearest_D[number]]).label if nearest_D[number] >= 0 else "",
            jaccard=float(jaccard_D[number]),
            ngrams=int(distinct_D[number]),
            seen_ngrams=int(seen_D[number]),
        )
        for number in documents.on([Side.TEST]).nonzero()[0].tolist()
    }


def audited_samples(samples: Sequence[Sample], found: Mapping[str, Exposure]) -> list[AuditedSample]:
    """The samples in their order, each with the exposure of its task's document.

    Raises BadPayload where a sample is of no document on the test side.
    """
    strangers = {sample.element for sample in samples} - found.keys()
    if strangers:
        raise BadPayload(
            f"a sample of the evaluation is of {min(strangers)}, which is no test-split memory of its "
            "snapshot; evaluate again"
        )
    return [AuditedSample(**asdict(sample), **asdict(found[sample.element])) for sample in samples]


def load_pairs(payload: bytes) -> list[NearDuplicate]:
    """The pairs of a payload; raises BadPayload when it is none."""
    return load_records(payload, NearDuplicate, what="a table of near-duplicates")


def load_documents(payload: bytes) -> list[AuditedDocument]:
    """The documents of a payload; raises BadPayload when it is none."""
    return load_records(payload, AuditedDocument, what="a table of audited documents")


def load_audited(payload: bytes) -> list[AuditedSample]:
    """The audited samples of a payload; raises BadPayload when it is none."""
    return load_records(payload, AuditedSample, what="a table of audited samples")
