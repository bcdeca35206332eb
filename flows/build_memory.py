"""Flow `build-memory`: workers turn odd shards into memories, and one commit makes them all visible."""

from collections.abc import Sequence
from typing import Any

from prefect.artifacts import create_table_artifact

from flows import watch
from flows.engine import bind, flow
from flows.notices import degraded
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.provenance.corpora import made_from
from flows.settings import Settings
from flows.workers.gpu import computing_device
from flows.workers.runner import spread
from store import Ref, Store, fingerprint
from store.errors import CellarError, ThresholdNotMet
from tasks.corpus import is_worker_shard, report_of
from tasks.errors import BadCorpus
from tasks.memory import Outcome, ShardResult, summarise
from tasks.memory.params import MemoryParams

SHOWN_REJECTIONS = 1000


def build_name(params: MemoryParams, corpus: Pin, tokenizer: str, codec: str) -> str:
    """The build's name follows from its inputs, so that a rerun finds the units of a killed run."""
    recipe = fingerprint(
        "flow.build_memory/1", params=params.model_dump(mode="json"), inputs=[*corpus.refs, tokenizer, codec]
    )
    return f"memory-{recipe[:16]}"


def _build_shard(
    settings: Settings, params: MemoryParams, build: str, shard: str, tokenizer: str, codec: str
) -> dict[str, Any]:
    from tasks.memory.step import build_shard

    prepare_threads(settings, sharing=settings.builders_here)
    store = open_store(settings)
    with (
        watch.progress(shard.partition("@")[0], "documents") as progress,
        computing_device(settings) as device,
    ):
        result = build_shard(
            store,
            store.build(build, owner="build-memory"),
            params,
            Ref.parse(shard),
            Ref.parse(tokenizer),
            Ref.parse(codec),
            progress,
            device=device,
        )
    return result.to_dict()


def _known(
    settings: Settings, params: MemoryParams, shards: list[str], support: list[str]
) -> list[dict[str, Any]]:
    """Outcomes of the shards that the store has a record of: nothing of them has to be looked at again."""
    from tasks.memory.step import recorded

    codec, tokenizer = map(Ref.parse, support)
    found = recorded(open_store(settings), params, [Ref.parse(text) for text in shards], tokenizer, codec)
    return [result.to_dict() for result in found.values()]


def commit_shards(
    store: Store, params: MemoryParams, build: str, shards: Sequence[ShardResult], support: Sequence[str]
) -> None:
    """Make the memories of shards visible at once, with a record of how each of the shards ended."""
    from tasks.memory.step import missing_records

    codec, tokenizer = map(Ref.parse, support)
    receipts = [receipt for shard in shards for receipt in shard.receipts]
    records = missing_records(store, params, shards, tokenizer, codec)
    if not receipts and not records:
        return
    opened = store.build(build, owner="build-memory")
    if records:
        with opened.writer("records") as writer:
            for record in records:
                writer.add(record)
            receipts.append(writer.finish())
    published = sum(len(shard.published) for shard in shards)
    opened.commit(receipts, message=f"Publish {published} memories")


def _commit(
    settings: Settings,
    params: MemoryParams,
    build: str,
    results: list[dict[str, Any]],
    support: list[str],
    corpus: list[str],
) -> str:
    """Commit the memories of all shards and pin them with what they require."""
    store = open_store(settings)
    shards = [ShardResult.from_dict(values) for values in results]
    published = [ref for shard in shards for ref in shard.published]
    if not published:
        raise nothing_published([outcome for shard in shards for outcome in shard.rejected])
    commit_shards(store, params, build, shards, support)
    refs = [*published, *(Ref.parse(text) for text in support)]
    report = report_of(store, [Ref.parse(text) for text in corpus])
    run = made_from([report] if report else [])
    return store.pin(refs, message="Pin memories with their codec and tokenizer", run=run).id


def nothing_published(rejected: list[Outcome]) -> CellarError:
    if not rejected:
        return BadCorpus("the odd shards hold no document to build memories of; give a larger corpus")
    best = max((outcome.figures for outcome in rejected), key=lambda figures: figures.token_recall)
    return ThresholdNotMet(
        f"none of {len(rejected)} documents reached the thresholds of publication, the best with a token "
        f"recall of {best.token_recall:.4f} and a loss of {best.loss:.4f}; train the codec longer, or lower "
        "memory.token_recall and raise memory.loss"
    )


_shard_task = bind(_build_shard, name="build shard")
_known_task = bind(_known, name="look for finished shards")
_commit_task = bind(_commit, name="commit memories")


def shard_results(
    params: MemoryParams, settings: Settings, builds: dict[str, list[str]], support: list[str]
) -> list[dict[str, Any]]:
    """Build the memories of the given shards, by build, on the workers of the settings.

    Shards that the store has a record of are taken from there. The order is that of `builds`.
    """
    shards = [shard for chosen in builds.values() for shard in chosen]
    known = {values["shard"]: values for values in _known_task(settings, params, shards, support)}
    calls = [
        (params, build, shard, support[1], support[0])
        for build, chosen in builds.items()
        for shard in chosen
        if shard not in known
    ]
    known |= {values["shard"]: values for values in spread(_shard_task, settings, calls, unit="shards")}
    return [known[shard] for shard in shards]


def _flow(params: Params, settings: Settings, corpus: Pin, tokenizer: Pin, codec: Pin) -> Pin:
    """Build the memories of all worker documents; the pin holds their snapshot and pooled figures."""
    support = [str(codec.one("codec")), str(tokenizer.one("tokenizer"))]
    build = build_name(params.memory, corpus, support[1], support[0])
    shards = [str(ref) for ref in corpus.references("corpus") if is_worker_shard(ref)]
    results = shard_results(params.memory, settings, {build: shards}, support)
    snapshot = _commit_task(settings, params.memory, build, results, support, list(corpus.refs))
    done = [ShardResult.from_dict(values) for values in results]
    rejected = rejected_documents(done)
    if rejected:
        create_table_artifact(
            key="rejected-documents",
            table=rejected,
            description=f"{len(rejected)} documents below the thresholds of publication",
        )
    figures = summarise(done)
    degraded.tell_of_build(settings, snapshot, figures)
    return Pin(stage="memory", snapshot=snapshot, figures={**figures, "rejected_documents": rejected})


def rejected_documents(shards: list[ShardResult]) -> list[dict[str, Any]]:
    """The documents that were not published, with the figures that kept them out."""
    outcomes = [outcome for shard in shards for outcome in shard.rejected]
    return [
        {"document": o.name, "token_recall": o.figures.token_recall, "loss": o.figures.loss}
        for o in outcomes[:SHOWN_REJECTIONS]
    ]


build_memory = flow(_flow, name="build-memory")
