"""The figures of a leakage audit for people: shared text, and scores with and without it, side by side."""

from collections.abc import Mapping
from typing import Any

from flows.formatting import columns, share
from flows.report.leakage import Leakage, leakage
from flows.report.scores import Score


def leakage_lines(summary: Mapping[str, Any]) -> list[str]:
    """What the documents share, then every condition's figures for each choice of tasks; none without an
    audit."""
    found = leakage(summary)
    if found is None:
        return []
    return ["", *_shared_lines(found), "", *_evidence_lines(found), "", *_score_lines(found), ""]


def _shared_lines(found: Leakage) -> list[str]:
    run = f"{found.ngram_tokens or 0:g}-gram"
    head = (
        "documents",
        "compared with",
        "number",
        f"near-duplicates (Jaccard >= {found.jaccard or 0:g})",
        f"share a {run}",
        f"{run}s shared",
    )
    rows = [
        (
            row.of,
            row.against,
            f"{row.documents or 0:,.0f}",
            f"{row.near_duplicates or 0:,.0f} ({share(row.near_share)})",
            f"{row.with_shared_ngram or 0:,.0f} ({share(row.any_share)})",
            share(row.ngram_share),
        )
        for row in found.shared
    ]
    return columns(rows, head)


def _evidence_lines(found: Leakage) -> list[str]:
    head = (
        "evidence",
        "tasks",
        "of the train split",
        "of the validation split",
        "near-duplicate of what was seen",
    )
    rows = [
        (
            row.condition,
            *(f"{n or 0:,.0f}" for n in (row.tasks, row.trained, row.validation, row.near_duplicates)),
        )
        for row in found.evidence
    ]
    return columns(rows, head)


def _score_lines(found: Leakage) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("tasks", *(f"{variant.tasks:,} of {variant.documents:,} documents" for variant in found.variants))
    ]
    for key, name in found.conditions:
        rows.append((f"nats, {name}", *(_figure(variant.losses.get(key)) for variant in found.variants)))
    for key, name in found.conditions:
        rows.append((f"exact, {name}", *(_figure(variant.exact.get(key)) for variant in found.variants)))
    rows.append(("document-specific share", *(_figure(variant.share) for variant in found.variants)))
    return columns(rows, ("", *(variant.label for variant in found.variants)))


def _figure(score: Score | None) -> str:
    if score is None or score.value is None:
        return "-"
    bounds = "" if score.bounds is None else f" [{score.bounds[0]:.4f}, {score.bounds[1]:.4f}]"
    return f"{score.value:.4f}{bounds}"
