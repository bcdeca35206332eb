"""Rate-distortion: every point is made of ordinary elements, measured as stored, and found again."""

import pytest

from store import Ref, Store
from tasks.codec import CodecArchitecture, CodecParams, train_codec
from tasks.errors import TooLittleText
from tasks.memory import MemoryParams
from tasks.rates import RateParams, evaluate_rate, points
from tasks.rates.step import RateSample
from tasks.tables import load_records

ARCHITECTURE = CodecArchitecture(
    block_tokens=8, cell_width=96, slot_width=32, mixing_width=8, channel_width=64
)
CODEC = CodecParams(architecture=ARCHITECTURE, steps=40, warmup_steps=4, candidates=64)
MEMORY = MemoryParams(tile_blocks=16, max_steps=8, patience=4)
PARAMS = RateParams(widths=(8, 96), worker_shards=2)
Place = tuple[Store, list[Ref], Ref]


def test_the_points_differ_in_width_and_format_and_the_usual_codec_is_the_usual_one() -> None:
    made = list(points(PARAMS, CODEC, MEMORY))

    assert [(point.width, point.dtype) for point in made] == [
        (width, dtype) for width in (8, 96) for dtype in ("bfloat16", "int8", "int4")
    ]
    assert made[-1].codec == CODEC
    assert {point.codec.name for point in made} == {"docs-8", "docs"}
    assert made[0].codec.architecture.slot_cell_width == 1


def test_a_width_that_slots_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="cell_width 12 is not a multiple of block_tokens 8"):
        list(points(RateParams(widths=(12,)), CODEC, MEMORY))


def test_smaller_cells_lose_more_and_all_of_it_is_in_the_store(place: Place) -> None:
    store, shards, tokenizer = place
    usual = train_codec(store, CODEC, corpus=shards, tokenizer=tokenizer)
    seen: list[tuple[int, int]] = []

    made = evaluate_rate(
        store,
        PARAMS,
        CODEC,
        MEMORY,
        corpus=shards,
        tokenizer=tokenizer,
        progress=lambda done, total, **_: seen.append((done, total)),
    )

    by_point = {(point["width"], point["dtype"]): point for point in made.summary["points"]}
    assert len(by_point) == 6
    assert [by_point[96, dtype]["bytes_per_block"] for dtype in ("bfloat16", "int8", "int4")] == [
        192,
        100,
        52,
    ]
    assert by_point[8, "bfloat16"]["token_recall"] < by_point[96, "bfloat16"]["token_recall"]
    assert by_point[96, "bfloat16"]["codec"] == str(usual), "the usual codec was not trained again"
    for point in by_point.values():
        for classes in ("by_rarity", "by_position"):
            counts = [(one["tokens"], one["token_recall"]) for one in point[classes]]
            assert sum(count for count, _ in counts) == point["tokens"]
            pooled = sum(count * recall for count, recall in counts if count) / point["tokens"]
            assert pooled == pytest.approx(point["token_recall"], abs=1e-9)
    rows = load_records(store.read(made.samples_ref), RateSample, what="samples")
    assert len(rows) == 6 * made.summary["documents"]
    assert len({row.document for row in rows}) == made.summary["documents"]
    memories = list(store.catalog().rows("memory"))
    assert len(memories) == len(rows), "every document is a memory at every point"
    assert seen[-1][0] == seen[-1][1]


def test_the_same_evaluation_is_found_and_another_reuses_its_points(place: Place) -> None:
    store, shards, tokenizer = place
    few = RateParams(widths=(96,), dtypes=("bfloat16",))
    first = evaluate_rate(store, few, CODEC, MEMORY, corpus=shards, tokenizer=tokenizer)
    before = {row.version for row in store.catalog().rows("memory")}

    again = evaluate_rate(store, few, CODEC, MEMORY, corpus=shards, tokenizer=tokenizer)
    more = RateParams(widths=(96,), dtypes=("bfloat16", "int8"))
    second = evaluate_rate(store, more, CODEC, MEMORY, corpus=shards, tokenizer=tokenizer)

    assert again.reused
    assert again.summary_ref == first.summary_ref
    assert second.summary["points"][0] == first.summary["points"][0]
    assert before < {row.version for row in store.catalog().rows("memory")}
    assert len(store.catalog().rows("codec")) == 1


def test_a_verdict_follows_the_measured_points(place: Place) -> None:
    store, shards, tokenizer = place
    params = RateParams(widths=(96,), least_recall=0.0, int8_loss=1.0)

    made = evaluate_rate(store, params, CODEC, MEMORY, corpus=shards, tokenizer=tokenizer).summary

    recall = {point["dtype"]: point["token_recall"] for point in made["points"]}
    assert made["smallest"]["point"]["dtype"] == "int4"
    assert made["int8"]["token_recall_lost"] == recall["bfloat16"] - recall["int8"]
    assert made["int8"]["qualifies"]


def test_a_corpus_without_worker_documents_is_refused(place: Place) -> None:
    store, shards, tokenizer = place
    even = [ref for ref in shards if int(ref.name.rpartition("-")[2]) % 2 == 0]

    with pytest.raises(TooLittleText, match="odd shards hold no document"):
        evaluate_rate(store, PARAMS, CODEC, MEMORY, corpus=even, tokenizer=tokenizer)
