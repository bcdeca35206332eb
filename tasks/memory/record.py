"""What the store remembers of documents beside their memories: why one was rejected, how a whole shard ended.

Both are records of kind `corpus` that no snapshot needs. Without them nothing is lost but time: a rejected
document is tried again, a shard is looked through document by document. So is one whose record is damaged.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from store import Element, Ref, Row, Store, canonical_json
from store.errors import IntegrityError, KeyMissing
from tasks.corpus import Document
from tasks.errors import BadPayload
from tasks.memory.figures import Figures
from tasks.memory.outcome import Outcome, ShardResult
from tasks.memory.params import MemoryParams
from tasks.memory.recipes import rejection_recipe, shard_recipe
from tasks.tables import load_table

_JSON = "application/json"
_PARQUET = "application/vnd.apache.parquet"
_TYPES = {"int": pa.int64(), "float": pa.float64()}
_FIGURES = {field.name: _TYPES[str(getattr(field.type, "__name__", field.type))] for field in fields(Figures)}
_COLUMNS = {"name": pa.string(), "version": pa.string(), **_FIGURES}
_WHAT = "the outcomes of a shard"
_DAMAGE = (IntegrityError, KeyMissing, BadPayload)
_LOG = logging.getLogger(__name__)


def rejection(document: Document, recipe: str, figures: Figures) -> Element:
    """The record that a document stayed below the thresholds, with the figures that kept it out."""
    return Element(
        "corpus",
        f"rejections/{recipe}",
        canonical_json({"document": document.name, "digest": document.digest}),
        media=_JSON,
        provenance={"recipe": rejection_recipe(recipe), "memory": recipe},
        facts=figures.to_dict(),
    )


def shard_record(params: MemoryParams, result: ShardResult, tokenizer: Ref, codec: Ref) -> Element:
    """The record of how all documents of a shard ended; publish it with the memories or after them."""
    return Element(
        "corpus",
        f"{result.shard.name.partition('/')[2]}/memories",
        encode_outcomes(result.outcomes),
        media=_PARQUET,
        provenance={"recipe": shard_recipe(params, result.shard, tokenizer, codec)},
        facts={"documents": len(result.outcomes), "rejected": len(result.rejected)},
    )


def recorded(
    store: Store, params: MemoryParams, shards: Sequence[Ref], tokenizer: Ref, codec: Ref
) -> dict[Ref, ShardResult]:
    """How those shards ended that the store has a record of, if their memories are all still there.

    One question for all shards; records of one commit lie side by side and are read in one request.
    """
    recipes = {shard: shard_recipe(params, shard, tokenizer, codec) for shard in shards}
    catalog = store.catalog()
    rows = catalog.find_many(recipes.values())
    found = {rows[recipe].version: shard for shard, recipe in recipes.items() if recipe in rows}
    results = {
        found[version]: ShardResult(found[version], (), outcomes, worked=0)
        for version, outcomes in _outcomes(store, list(rows.values())).items()
    }
    memories = {ref.version for result in results.values() for ref in result.published}
    gone = memories - catalog.known(memories)
    return {
        shard: result
        for shard, result in results.items()
        if not gone.intersection(ref.version for ref in result.published)
    }


def _outcomes(store: Store, rows: Sequence[Row]) -> dict[str, tuple[Outcome, ...]]:
    """What records say, by version; a damaged one is left out with a warning."""
    try:
        return {row.version: tuple(decode_outcomes(payload)) for row, payload in store.stream(rows)}
    except _DAMAGE:  # a stream ends at the first one
        pass
    found: dict[str, tuple[Outcome, ...]] = {}
    for row in rows:
        try:
            found[row.version] = tuple(decode_outcomes(store.read(row)))
        except _DAMAGE as error:
            _LOG.warning("%s cannot be read, so its documents are looked at one by one: %s", row.name, error)
    return found


def missing_records(
    store: Store, params: MemoryParams, results: Iterable[ShardResult], tokenizer: Ref, codec: Ref
) -> list[Element]:
    """The records of those shards that the store has none of yet."""
    records = [shard_record(params, result, tokenizer, codec) for result in results]
    known = store.catalog().find_many(record.provenance["recipe"] for record in records)
    return [record for record in records if record.provenance["recipe"] not in known]


def encode_outcomes(outcomes: Iterable[Outcome]) -> bytes:
    """Parquet bytes, a row per document; the version is empty where it was rejected."""
    rows = [
        {"name": o.name, "version": o.ref.version if o.ref else "", **o.figures.to_dict()} for o in outcomes
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=pa.schema(list(_COLUMNS.items()))),
        sink,
        compression="zstd",
        write_statistics=False,
        store_schema=False,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_outcomes(payload: bytes) -> list[Outcome]:
    """The outcomes of `encode_outcomes`; raises `BadPayload` for other bytes."""
    rows = load_table(payload, _COLUMNS, what=_WHAT).to_pylist()
    try:
        return [_outcome(row) for row in rows]
    except ValueError as error:
        raise BadPayload(f"the payload is not {_WHAT} ({error}); check the reference") from error


def _outcome(row: Mapping[str, Any]) -> Outcome:
    ref = Ref(f"memory/{row['name']}", row["version"]) if row["version"] else None
    return Outcome(row["name"], ref, Figures.from_dict({name: row[name] for name in _FIGURES}))
