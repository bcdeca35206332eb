"""The rates room's door to the store: train, remember and measure every point, or find what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from store import Recipe, Ref, Store
from tasks.checkpoint import CHECKPOINT_S
from tasks.codec import CodecParams, open_codec, stored_bytes, train_codec
from tasks.corpus import is_worker_shard, load_shard, load_tokenizer
from tasks.errors import TooLittleText
from tasks.evaluation import PublishedEvaluation, Table, find_evaluation, publish_evaluation
from tasks.memory import MemoryParams, Outcome, decode_cells, pool
from tasks.progress import Progress, silent
from tasks.rates.distortion import Tokens, by_position, by_rarity, read_right, tokens_of
from tasks.rates.params import RateParams
from tasks.rates.points import Point, points, remember
from tasks.tables import encode_records

RECIPE = "evaluation.rate/1"
SAMPLES_RECIPE = "evaluation.rate.samples/1"


@dataclass(frozen=True)
class RateSample:
    """A document at a point; `published` says whether the thresholds of the workers let it through."""

    width: int
    dtype: str
    document: str
    tokens: int
    blocks: int
    token_recall: float
    span8_exact: float
    loss: float
    steps: int
    published: bool


def evaluate_rate(
    store: Store,
    params: RateParams,
    codec: CodecParams,
    memory: MemoryParams,
    *,
    corpus: Sequence[Ref],
    tokenizer: Ref,
    progress: Progress = silent,
    device: str = "cpu",
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Publish what the documents of some worker shards lose at every point, or find it published.

    Codecs and memories of the points are ordinary elements: what the store has is not made again, and an
    interrupted evaluation continues with what is missing. All figures are of stored bytes, read back with
    the full softmax, of documents that no codec has seen. `progress` counts codec updates and documents.

    Raises `TooLittleText` when there is no worker shard.
    """
    recipe = rate_recipe(params, codec, memory, corpus, tokenizer).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    shards = _worker_shards(corpus)[: params.worker_shards]
    bench = _Bench(store, corpus, shards, tokenizer)
    updates = codec.steps * len(params.widths)
    total = updates + len(bench.names) * len(params.widths) * len(params.dtypes)
    measured: list[dict[str, Any]] = []
    samples: list[RateSample] = []
    refs: dict[int, Ref] = {}
    for number, point in enumerate(points(params, codec, memory)):
        before = number * len(bench.names)
        if point.width not in refs:
            refs[point.width] = train_codec(
                store,
                point.codec,
                corpus=corpus,
                tokenizer=tokenizer,
                progress=_onward(progress, codec.steps * len(refs) + before, total),
                device=device,
                work_dir=work_dir,
                checkpoint_s=checkpoint_s,
            )
        advance = _onward(progress, codec.steps * len(refs) + before, total)
        figures, rows = bench.measure(point, refs[point.width], memory, advance, device)
        measured.append(figures)
        samples += rows
    summary = {
        "protocol": "documents of worker shards, as stored, full softmax",
        "documents": len(bench.names),
        "raw_id_bytes_per_block": 2 * codec.architecture.block_tokens,
        "thresholds": {"token_recall": memory.token_recall, "loss": memory.loss},
        "points": measured,
        "smallest": _smallest(measured, params.least_recall),
        "int8": _int8(measured, codec.architecture.cell_width, params.int8_loss),
    }
    return publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_records(RateSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[*(ref.version for ref in refs.values()), tokenizer.version],
        provenance={
            "subject": "rate",
            "params": params.model_dump(mode="json"),
            "codecs": [str(ref) for ref in refs.values()],
            "tokenizer": str(tokenizer),
            "corpus": [str(ref) for ref in shards],
        },
        costs={},
        message=f"Publish evaluation {params.name}: {len(measured)} points, {len(bench.names)} documents",
    )


def rate_recipe(
    params: RateParams, codec: CodecParams, memory: MemoryParams, corpus: Sequence[Ref], tokenizer: Ref
) -> Recipe:
    """How the evaluation of these shards is made: training shards count, and the worker shards measured."""
    training = sorted((ref for ref in corpus if not is_worker_shard(ref)), key=lambda ref: ref.name)
    shards = [*training, *_worker_shards(corpus)[: params.worker_shards]]
    inputs = (tokenizer.version, *(ref.version for ref in shards))
    values = {
        "rate": params.model_dump(mode="json"),
        "codec": codec.model_dump(mode="json"),
        "memory": memory.identity(),
    }
    return Recipe(RECIPE, values, inputs)


class _Bench:
    """The documents of some worker shards, with how often the training shards have their tokens."""

    def __init__(self, store: Store, corpus: Sequence[Ref], shards: Sequence[Ref], tokenizer: Ref) -> None:
        tokens = load_tokenizer(store, tokenizer)
        self._store, self._shards, self._tokenizer = store, shards, tokenizer
        documents = [document for shard in shards for document in load_shard(store.read(shard))]
        if not documents:
            raise TooLittleText("the odd shards hold no document to remember; give a larger corpus")
        self.names = [document.name for document in documents]
        self._ids = dict(zip(self.names, tokens.encode_many([d.text for d in documents]), strict=True))
        self._counts_V: npt.NDArray[np.int64] = np.zeros(tokens.vocab_size, np.int64)
        for shard in (ref for ref in corpus if not is_worker_shard(ref)):
            for ids in tokens.encode_many([d.text for d in load_shard(store.read(shard))]):
                self._counts_V += np.bincount(ids, minlength=tokens.vocab_size)

    def measure(
        self, point: Point, codec: Ref, usual: MemoryParams, progress: Progress, device: str
    ) -> tuple[dict[str, Any], list[RateSample]]:
        """Remember all documents at a point; its figures, and each document's."""
        outcomes: list[Outcome] = []
        for shard in self._shards:
            advance = _onward(progress, len(outcomes), len(self.names))
            made = remember(self._store, point, shard, self._tokenizer, codec, advance, device=device)
            outcomes += made.outcomes
        samples = [_sample(point, outcome, usual) for outcome in outcomes]
        total = pool(outcome.figures for outcome in outcomes)
        right_M, tokens = self._right(point, codec, outcomes)
        block_tokens = point.codec.architecture.block_tokens
        figures = {
            "width": point.width,
            "dtype": point.dtype,
            "bytes_per_block": stored_bytes(point.width, point.dtype),
            "tokens": total.tokens,
            "blocks": total.blocks,
            "token_recall": total.token_recall,
            "span8_exact": total.span8_exact,
            "loss": total.loss,
            "steps_per_block": total.steps / total.blocks,
            "published": sum(sample.published for sample in samples) / len(samples),
            "by_rarity": by_rarity(right_M, tokens),
            "by_position": by_position(right_M, tokens, block_tokens),
            "codec": str(codec),
        }
        return figures, samples

    def _right(
        self, point: Point, codec: Ref, outcomes: Sequence[Outcome]
    ) -> tuple[npt.NDArray[np.bool_], Tokens]:
        opened = open_codec(self._store, codec)
        ids = [self._ids[outcome.name] for outcome in outcomes]
        memories = [
            decode_cells(self._store.read(outcome.ref), opened.architecture)
            for outcome in outcomes
            if outcome.ref is not None
        ]
        assert len(memories) == len(ids), "at a point every document is remembered"
        tokens = tokens_of(ids, self._counts_V, opened.architecture.block_tokens)
        return read_right(opened, ids, memories, point.memory), tokens


def _onward(progress: Progress, start: int, whole: int) -> Progress:
    """Report a part's progress as that of the whole, of which `start` was done before."""

    def advance(done: int, total: int, **figures: float) -> None:
        progress(start + done, whole, **figures)

    return advance


def _sample(point: Point, outcome: Outcome, usual: MemoryParams) -> RateSample:
    figures = outcome.figures
    return RateSample(
        width=point.width,
        dtype=point.dtype,
        document=outcome.name,
        tokens=figures.tokens,
        blocks=figures.blocks,
        token_recall=figures.token_recall,
        span8_exact=figures.span8_exact,
        loss=figures.loss,
        steps=figures.steps,
        published=figures.token_recall >= usual.token_recall and figures.loss <= usual.loss,
    )


def _smallest(measured: Sequence[dict[str, Any]], least: float) -> dict[str, Any]:
    """The point of the fewest bytes whose recall suffices, None if none does."""
    enough = [point for point in measured if point["token_recall"] >= least]
    best = min(enough, key=lambda point: (point["bytes_per_block"], -point["token_recall"]), default=None)
    kept = ("width", "dtype", "bytes_per_block", "token_recall")
    return {"least_recall": least, "point": None if best is None else {name: best[name] for name in kept}}


def _int8(measured: Sequence[dict[str, Any]], width: int, most: float) -> dict[str, Any] | None:
    """What int8 loses at the usual width; None where the grid lacks one of the two points."""
    recall = {point["dtype"]: point["token_recall"] for point in measured if point["width"] == width}
    if not {"bfloat16", "int8"} <= recall.keys():
        return None
    lost = recall["bfloat16"] - recall["int8"]
    return {"width": width, "token_recall_lost": lost, "allowed": most, "qualifies": lost < most}


def _worker_shards(corpus: Sequence[Ref]) -> list[Ref]:
    return sorted((ref for ref in corpus if is_worker_shard(ref)), key=lambda ref: ref.name)
