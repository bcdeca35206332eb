"""How an evaluation lies in the store: a summary as JSON, and its samples in a table that it names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store import Element, Ref, Store, canonical_json, fingerprint

JSON_MEDIA = "application/json"
TABLE_MEDIA = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class PublishedEvaluation:
    """An evaluation in the store: its summary, what it cost, and both elements."""

    summary: dict[str, Any]
    costs: dict[str, Any]
    summary_ref: Ref
    samples_ref: Ref
    reused: bool


def find_evaluation(store: Store, recipe: str) -> PublishedEvaluation | None:
    """The published evaluation of a recipe's fingerprint; None where nobody made it."""
    row = store.catalog().find(recipe)
    if row is None:
        return None
    samples = Ref.parse(row.provenance["samples"])
    return PublishedEvaluation(json.loads(store.read(row)), dict(row.facts), row.ref, samples, reused=True)


def publish_evaluation(
    store: Store,
    name: str,
    summary: Mapping[str, Any],
    samples: bytes,
    *,
    count: int,
    recipe: str,
    samples_recipe: str,
    requires: Sequence[str],
    provenance: Mapping[str, Any],
    costs: Mapping[str, Any],
    message: str,
) -> PublishedEvaluation:
    """Publish `evaluation/<name>` and `evaluation/<name>/samples`, in one commit.

    Args:
        samples: `count` rows as Parquet.
        recipe: the fingerprint of how the evaluation is made.
        samples_recipe: name and number of how the samples follow from that.
        requires: versions that both depend on.
        provenance: of both, besides their recipes.
        costs: seconds and memory: facts beside what is reproducible.
    """
    made_from = fingerprint(samples_recipe, params={}, inputs=[recipe])
    table = Element(
        "evaluation",
        f"{name}/samples",
        samples,
        media=TABLE_MEDIA,
        requires=tuple(requires),
        provenance={**provenance, "recipe": made_from},
        facts={"samples": count},
    )
    report = Element(
        "evaluation",
        name,
        canonical_json(summary),
        media=JSON_MEDIA,
        requires=(*requires, table.version),
        provenance={**provenance, "recipe": recipe, "samples": str(table.ref)},
        facts=dict(costs),
    )
    refs = {ref.name: ref for ref in store.publish([table, report], message=message)}
    return PublishedEvaluation(
        json.loads(report.payload),
        dict(costs),
        refs[report.full_name],
        refs[table.full_name],
        reused=False,
    )
