"""How an evaluation lies in the store: a summary as JSON, and its samples in a table that it names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from store import Element, Ref, Row, Store, canonical_json, fingerprint
from store.errors import CellarError
from tasks.errors import BadPayload

JSON_MEDIA = "application/json"
TABLE_MEDIA = "application/vnd.apache.parquet"
SubjectName = Literal[
    "addressing",
    "anneal",
    "audit",
    "composition",
    "facts",
    "questions",
    "rate",
    "reading",
    "replacement",
    "replay",
    "selection",
    "skills",
]
"""What is evaluated, besides aligned attachments."""


@dataclass(frozen=True)
class Table:
    """A table of an evaluation: `count` rows as Parquet, and the `recipe` by which they follow from it."""

    payload: bytes
    count: int
    recipe: str


@dataclass(frozen=True)
class PublishedEvaluation:
    """An evaluation in the store: its summary, what it cost, and both elements."""

    summary: dict[str, Any]
    costs: dict[str, Any]
    summary_ref: Ref
    samples_ref: Ref
    reused: bool


def find_evaluation(store: Store, recipe: str, *, name: str | None = None) -> PublishedEvaluation | None:
    """The published evaluation of a recipe's fingerprint; None where nobody made it.

    `name` is what it is called, for one whose fingerprint does not know that. Raises `BadPayload` for one
    that is no summary with samples.
    """
    row = store.catalog().find(recipe, name=None if name is None else f"evaluation/{name}")
    if row is None:
        return None
    payload = store.read(row)
    try:
        samples, summary = Ref.parse(row.provenance["samples"]), json.loads(payload)
        if row.ref.kind != "evaluation" or not isinstance(summary, dict):
            raise ValueError("no summary")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, CellarError) as error:
        raise BadPayload(
            f"{row.ref} stands in {store.url} as an evaluation and is no summary with samples; use a store "
            "that you trust"
        ) from error
    return PublishedEvaluation(summary, dict(row.facts), row.ref, samples, reused=True)


def newest_evaluation(
    store: Store, subject: SubjectName, **made_from: str
) -> tuple[Row, dict[str, Any]] | None:
    """The newest evaluation of a subject whose provenance holds these values, and its summary.

    None where nobody made one. Raises BadPayload for a summary that is no JSON object.
    """
    wanted = {"subject": subject, **made_from}
    rows = [
        row
        for row in store.catalog().rows("evaluation")
        if row.media == JSON_MEDIA and all(row.provenance.get(name) == wanted[name] for name in wanted)
    ]
    if not rows:
        return None
    row = max(rows, key=lambda row: (row.commit, row.name))
    try:
        summary = json.loads(store.read(row))
    except (ValueError, RecursionError):
        summary = None
    if not isinstance(summary, dict):
        raise BadPayload(f"{row.ref} is no summary of an evaluation; run `cellar eval run {subject}`")
    return row, summary


def publish_evaluation(
    store: Store,
    name: str,
    summary: Mapping[str, Any],
    tables: Mapping[str, Table],
    *,
    recipe: str,
    requires: Sequence[str],
    provenance: Mapping[str, Any],
    costs: Mapping[str, Any],
    message: str,
) -> PublishedEvaluation:
    """Publish `evaluation/<name>` and its tables `evaluation/<name>/samples` and so on, in one commit.

    Args:
        tables: by their names, of which one is `samples`; the summary's record has their references.
        recipe: the fingerprint of how the evaluation is made.
        requires: versions that all of it depends on.
        provenance: of all of it, besides the recipes and the references of the tables; `subject` is
            the `SubjectName` of one that is of no attachments.
        costs: seconds and memory: facts beside what is reproducible.
    """
    elements = {
        label: Element(
            "evaluation",
            f"{name}/{label}",
            table.payload,
            media=TABLE_MEDIA,
            requires=tuple(requires),
            provenance={**provenance, "recipe": fingerprint(table.recipe, params={}, inputs=[recipe])},
            facts={"rows": table.count},
        )
        for label, table in tables.items()
    }
    report = Element(
        "evaluation",
        name,
        canonical_json(summary),
        media=JSON_MEDIA,
        requires=(*requires, *(element.version for element in elements.values())),
        provenance={
            **provenance,
            "recipe": recipe,
            **{label: str(element.ref) for label, element in elements.items()},
        },
        facts=dict(costs),
    )
    refs = {ref.name: ref for ref in store.publish([*elements.values(), report], message=message)}
    return PublishedEvaluation(
        json.loads(report.payload),
        dict(costs),
        refs[report.full_name],
        refs[elements["samples"].full_name],
        reused=False,
    )
