"""The points of a rate-distortion curve: a codec for each width, its cells in each number format."""

from collections.abc import Iterator
from dataclasses import dataclass

from store import Ref, Store, fingerprint
from tasks.codec import CellDtype, CodecParams
from tasks.memory import MemoryParams, ShardResult, build_shard, missing_records, recorded
from tasks.progress import Progress
from tasks.rates.params import RateParams

_ANY_LOSS = 1e9
"""Above every loss: a point remembers all documents, and says which of them would have been published."""


@dataclass(frozen=True)
class Point:
    """A width with a number format, and the parameters of the codec and the workers that make it."""

    width: int
    dtype: CellDtype
    codec: CodecParams
    memory: MemoryParams


def points(params: RateParams, codec: CodecParams, memory: MemoryParams) -> Iterator[Point]:
    """Every width with every format. The codec of the usual width is the usual one; no document is rejected.

    One codec serves all formats of its width, so that formats differ by what they store alone.
    """
    for width in params.widths:
        usual = width == codec.architecture.cell_width
        architecture = codec.architecture.model_copy(update={"cell_width": width})
        architecture = type(architecture).model_validate(architecture.model_dump())
        own = {} if usual else {"name": f"{codec.name}-{width}", "architecture": architecture}
        for dtype in params.dtypes:
            all_kept = {"dtype": dtype, "token_recall": 0.0, "loss": _ANY_LOSS}
            yield Point(width, dtype, codec.model_copy(update=own), memory.model_copy(update=all_kept))


def remember(
    store: Store, point: Point, shard: Ref, tokenizer: Ref, codec: Ref, progress: Progress, *, device: str
) -> ShardResult:
    """The memories of a worker shard at a point, published; what the store has of them is found again."""
    known = recorded(store, point.memory, [shard], tokenizer, codec)
    if shard in known:
        return known[shard]
    inputs = [shard.version, tokenizer.version, codec.version]
    name = fingerprint("rates.remember/1", params=point.memory.model_dump(mode="json"), inputs=inputs)
    build = store.build(f"rate-{name[:16]}", owner="evaluate-rate")
    result = build_shard(store, build, point.memory, shard, tokenizer, codec, progress, device=device)
    receipts = list(result.receipts)
    records = missing_records(store, point.memory, [result], tokenizer, codec)
    if records:
        with build.writer("records") as writer:
            for record in records:
                writer.add(record)
            receipts.append(writer.finish())
    if receipts:
        build.commit(
            receipts,
            message=f"Publish {len(result.published)} memories, {point.width} numbers, {point.dtype}",
        )
    return result
