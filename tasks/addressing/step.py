"""The addressing room's door to the store: measure how well the index of a snapshot finds its memories."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store import Element, Recipe, Ref, Row, Snapshot, Store, canonical_json, fingerprint
from tasks.addressing.kinds import make_tasks, value_vocabulary
from tasks.addressing.params import AddressingParams
from tasks.addressing.run import AddressingEvaluator
from tasks.addressing.samples import MEDIA, AddressingSample
from tasks.addressing.summary import summarise
from tasks.assembly import worker_documents
from tasks.codec import load_codec
from tasks.corpus import element_split, load_tokenizer
from tasks.errors import TooLittleText
from tasks.progress import Progress, silent
from tasks.retrieval import Index
from tasks.tables import encode_records, load_records

RECIPE = "evaluation.addressing/1"
SAMPLES_RECIPE = "evaluation.addressing.samples/1"
JSON_MEDIA = "application/json"


@dataclass(frozen=True)
class AddressingResult:
    """A published evaluation of addressing: summary, what it cost, and both elements."""

    summary: dict[str, Any]
    costs: dict[str, Any]
    summary_ref: Ref
    samples_ref: Ref
    reused: bool


def evaluate_addressing(
    store: Store,
    params: AddressingParams,
    *,
    snapshot: Snapshot,
    corpus: Sequence[Ref],
    progress: Progress = silent,
) -> AddressingResult:
    """Ask the index pinned in a snapshot, and its baselines, for test-split memories by all kinds of cues.

    Cues are cut from the documents' own tokens, out of `corpus`, and looked up in what the memories decode
    to. Publishes `evaluation/<name>` (the summary as JSON) and `evaluation/<name>/samples` (Parquet, one row
    per task, share of changed tokens and searcher), or returns what is published for the same parameters,
    snapshot and corpus. Rates are facts beside them. `progress` counts samples.

    Raises `TooLittleText` when a kind has no task in the test-split documents, `StaleIndex` when the
    snapshot's index does not fit its memories.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    recipe = addressing_recipe(params, snapshot.id, shards).fingerprint
    if (row := store.catalog().find(recipe)) is not None:
        return _found(store, row)
    tokenizer = load_tokenizer(store, snapshot.one("tokenizer").ref)
    block_tokens = load_codec(snapshot.read(snapshot.one("codec"))).architecture.block_tokens
    index = Index.open(store, snapshot)
    texts = worker_documents(store, shards, tokenizer, snapshot.rows("memory"))
    asked = {name: ids for name, ids in texts.items() if element_split(name) == "test"}
    values = value_vocabulary(texts, tokenizer, params.rare_elements)
    tasks = make_tasks(asked, values, block_tokens, params)
    if missing := [kind.value for kind, group in tasks.items() if not group]:
        raise TooLittleText(
            f"the {len(asked)} test-split documents of snapshot {snapshot.id[:12]} have no place for a "
            f"{missing[0].replace('_', ' ')}; build more memories or shorten the tasks"
        )
    samples, rates = AddressingEvaluator.of(index, texts, tokenizer, params).run(tasks, progress)
    summary = summarise(samples, params)
    summary["settings"] = params.model_dump(mode="json")
    summary["snapshot"] = snapshot.id
    summary["elements"] = len(index.readout)
    summary["indexed_tokens"] = len(index.readout.tokens_N)
    return _publish(store, params, recipe, snapshot, summary, samples, {"rates": rates})


def addressing_recipe(params: AddressingParams, snapshot: str, corpus: Sequence[Ref]) -> Recipe:
    """How addressing is evaluated on the snapshot of an id, with the shards of its corpus."""
    inputs = (snapshot, *(ref.version for ref in sorted(corpus, key=lambda ref: ref.name)))
    return Recipe(RECIPE, params.model_dump(mode="json"), inputs)


def load_addressing_samples(payload: bytes) -> list[AddressingSample]:
    """The samples of an evaluation; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, AddressingSample, what="a table of addressing samples")


def _publish(
    store: Store,
    params: AddressingParams,
    recipe: str,
    snapshot: Snapshot,
    summary: dict[str, Any],
    samples: Sequence[AddressingSample],
    costs: dict[str, Any],
) -> AddressingResult:
    needed = tuple(row.version for kind in ("index", "reranker") for row in snapshot.rows(kind))
    provenance = {"recipe": recipe, "snapshot": snapshot.id}
    table = Element(
        "evaluation",
        f"{params.name}/samples",
        encode_records(AddressingSample, samples),
        media=MEDIA,
        requires=needed,
        provenance={**provenance, "recipe": fingerprint(SAMPLES_RECIPE, params={}, inputs=[recipe])},
        facts={"samples": len(samples)},
    )
    report = Element(
        "evaluation",
        params.name,
        canonical_json(summary),
        media=JSON_MEDIA,
        requires=(*needed, table.version),
        provenance={**provenance, "samples": str(table.ref)},
        facts=costs,
    )
    message = f"Evaluate addressing of {snapshot.id[:12]}: {summary['tasks']} tasks"
    refs = {ref.name: ref for ref in store.publish([table, report], message=message)}
    return AddressingResult(
        json.loads(report.payload), costs, refs[report.full_name], refs[table.full_name], reused=False
    )


def _found(store: Store, row: Row) -> AddressingResult:
    samples = Ref.parse(row.provenance["samples"])
    return AddressingResult(json.loads(store.read(row)), dict(row.facts), row.ref, samples, reused=True)
