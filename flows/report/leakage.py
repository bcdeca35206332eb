"""An evaluation's leakage audit as the report tells it: shared text, and scores with and without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import number, section
from flows.report.conditions import in_reading_order, label
from flows.report.scores import Score, score

_VARIANTS = {
    "all": "all tasks",
    "without_near_duplicates": "without near-duplicates",
    "without_shared_ngrams": "without any shared run",
}
SIDES = {
    "language": "even shards",
    "worker": "odd shards",
    "train": "train split",
    "validation": "validation split",
    "test": "test split",
    "tasks": "documents of the tasks",
    "seen": "all that training and tuning saw",
}


@dataclass(frozen=True)
class Variant:
    """One choice of tasks; `tasks` and `documents` remain, none of both where no task does."""

    key: str
    label: str
    tasks: int
    documents: int
    losses: Mapping[str, Score]
    """Nats per target token by condition."""
    exact: Mapping[str, Score]
    share: Score
    """Document-specific share of the gain."""


@dataclass(frozen=True)
class Shared:
    """What the documents `of` one part share with those of another; missing figures are None."""

    of: str
    against: str
    documents: float | None
    near_duplicates: float | None
    with_shared_ngram: float | None
    near_share: float | None
    """Near-duplicates as a share of the documents."""
    any_share: float | None
    """Documents that share a run, as a share of all."""
    ngram_share: float | None
    """Share of the part's distinct n-grams that the other has too."""


@dataclass(frozen=True)
class Evidence:
    """Of how many tasks a condition's evidence was seen by training or tuning; missing figures are None."""

    condition: str
    tasks: float | None
    trained: float | None
    validation: float | None
    near_duplicates: float | None


@dataclass(frozen=True)
class Leakage:
    """Rows of shared text and of evidence, and the variants side by side; `conditions` are (key, printed
    name)."""

    ngram_tokens: float | None
    jaccard: float | None
    shared: Sequence[Shared]
    evidence: Sequence[Evidence]
    variants: Sequence[Variant]
    conditions: Sequence[tuple[str, str]]


def leakage(summary: Mapping[str, Any]) -> Leakage | None:
    """The audit of a summary, None if it has none."""
    given = section(summary, "leakage")
    scores = section(given, "scores")
    if not scores:
        return None
    variants = [_variant(key, name, section(scores, key)) for key, name in _VARIANTS.items() if key in scores]
    names = in_reading_order({name for variant in variants for name in variant.losses})
    settings = section(given, "settings")
    return Leakage(
        number(settings.get("ngram_tokens")),
        number(settings.get("jaccard")),
        [_shared(row) for row in given.get("comparisons") or () if isinstance(row, Mapping)],
        [_evidence(row) for row in given.get("evidence") or () if isinstance(row, Mapping)],
        variants,
        [(name, label(name)) for name in names],
    )


def _shared(row: Mapping[str, Any]) -> Shared:
    documents, near = number(row.get("documents")), number(row.get("near_duplicates"))
    sharing = number(row.get("with_shared_ngram"))
    return Shared(
        _side(row.get("of")),
        _side(row.get("against")),
        documents,
        near,
        sharing,
        _ratio(near, documents),
        _ratio(sharing, documents),
        _ratio(number(row.get("shared_ngrams")), number(row.get("ngrams"))),
    )


def _evidence(row: Mapping[str, Any]) -> Evidence:
    counts = (number(row.get(name)) for name in ("tasks", "trained", "validation", "near_duplicates"))
    return Evidence(label(str(row.get("condition"))), *counts)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if whole and part is not None else None


def _side(name: object) -> str:
    """A part of the documents in words."""
    return SIDES.get(name, name) if isinstance(name, str) else ""


def _variant(key: str, name: str, figures: Mapping[str, Any]) -> Variant:
    conditions, gain = section(figures, "conditions"), section(figures, "gain")
    return Variant(
        key,
        name,
        int(number(figures.get("tasks")) or 0),
        int(number(figures.get("documents")) or 0),
        {condition: score(section(conditions, condition).get("nll")) for condition in conditions},
        {condition: score(section(conditions, condition).get("greedy_exact")) for condition in conditions},
        score(section(section(gain, "intervals"), "share") or gain.get("document_specific_share")),
    )
