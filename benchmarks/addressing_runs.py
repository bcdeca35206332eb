"""The parts of `benchmarks.addressing`, each run in a process of its own."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SEED = 17
CUE_TOKENS, ANSWER_TOKENS, CANDIDATES = 32, 8, 64
TIMED, ROUNDS = 400, 5
SHARES = (0.0, 0.1, 0.2, 0.3)


def write_texts(
    *, folder: str, elements: int, tokens: int, vocab_size: int, repeated: float
) -> dict[str, Any]:
    """Make the synthetic texts, as one readout in a file."""
    from benchmarks.scale_text import synthetic_texts
    from benchmarks.updates import installed
    from tasks.corpus import TokenizerParams, train_bpe
    from tasks.retrieval import DecodedMemory, Readout

    texts = [document["text"] for document in installed()]
    tokenizer = train_bpe(texts, TokenizerParams(vocab_size=vocab_size))
    source = tokenizer.encode_many(texts)
    tokens_N, start_E1 = synthetic_texts(
        source, elements=elements, tokens=tokens, repeated=repeated, seed=SEED
    )
    none_C = np.zeros(1, dtype=np.float32)
    memories = [
        DecodedMemory(f"memory/text-{row:06d}", _version(row), tokens_N[begin:end], none_C)
        for row, (begin, end) in enumerate(pairwise(start_E1.tolist()))
    ]
    (Path(folder) / "readout").write_bytes(Readout.of(memories).to_bytes())
    count_V = np.sort(np.bincount(tokens_N, minlength=vocab_size))[::-1]
    return {
        "elements": elements,
        "tokens": len(tokens_N),
        "source_tokens": sum(map(len, source)),
        "top_100_share": float(count_V[:100].sum() / len(tokens_N)),
        "tokens_used": int((count_V > 0).sum()),
    }


def build(*, folder: str, vocab_size: int) -> dict[str, Any]:
    """Make the charts of the readout and write them."""
    from tasks.retrieval import ChartParams, Charts, Readout

    place = Path(folder)
    readout = Readout.from_bytes((place / "readout").read_bytes())
    began, worked = time.perf_counter(), time.process_time()
    charts = Charts.of(readout.tokens_N, readout.start_E1, vocab_size, ChartParams())
    seconds, processor_s = time.perf_counter() - began, time.process_time() - worked
    payload = charts.to_bytes()
    (place / "charts").write_bytes(payload)
    return {"seconds": seconds, "processor_s": processor_s, "bytes": len(payload)}


def fit(*, folder: str) -> dict[str, Any]:
    """Train the reranker on train-split elements and write it."""
    from tasks.retrieval import Index, RerankerParams, SearchParams
    from tasks.retrieval.reranker import train
    from tasks.retrieval.training import labelled_alignments

    began = time.perf_counter()
    params = RerankerParams()
    untrained = Index(_sources(folder), None, SearchParams())
    reranker = train(labelled_alignments(untrained, params), params, SearchParams())
    (Path(folder) / "reranker").write_bytes(reranker.to_bytes())
    return {"seconds": time.perf_counter() - began}


def search(*, folder: str, queries: int) -> dict[str, Any]:
    """Open the index from mapped files and ask it; a warm-up comes first."""
    began = time.perf_counter()
    index = _index(folder)
    opened = time.perf_counter() - began
    texts, tasks, cues = _asked(index, queries)
    index.search_many(cues[0][:500], CANDIDATES)
    found = {share: _figures(index, tasks, texts, asked) for share, asked in zip(SHARES, cues, strict=True)}
    return {"open_seconds": opened, "by_share": found}


def bm25(*, folder: str, queries: int) -> dict[str, Any]:
    """Index the same token ids with bm25s and ask it the same cues, by its own `retrieve`."""
    from tasks.retrieval import BM25Search, evaluate

    index = _index(folder)
    texts, tasks, cues = _asked(index, queries)
    began = time.perf_counter()
    baseline = BM25Search(index)
    seconds = time.perf_counter() - began
    found = {}
    for share, asked in zip(SHARES, cues, strict=True):
        figures = evaluate(baseline, tasks, texts, cues=asked, candidates=CANDIDATES, timed_queries=1)
        rows = [cue.tolist() for cue in asked]
        began = time.perf_counter()
        rate = _per_processor_second(partial(_retrieve, baseline.model, rows), len(rows))
        found[share] = {
            "candidate_recall": figures.candidate_recall,
            "recall_at_1": figures.recall_at_1,
            "queries_per_second": len(rows) / (time.perf_counter() - began),
            "queries_per_processor_second": rate,
        }
    return {"build_seconds": seconds, "by_share": found}


def _retrieve(model: Any, rows: list[list[int]]) -> None:
    model.retrieve(rows, k=CANDIDATES, show_progress=False)


def change(*, folder: str, changes: int) -> dict[str, Any]:
    """Add texts to the mapped index one by one, remove as many of its own, and make one index of all."""
    from tasks.retrieval import DecodedMemory, Overlay

    index = _index(folder)
    readout, draw = index.readout, np.random.default_rng(SEED)
    overlay, added, removed, found = Overlay(index), [], [], 0
    for number in range(changes):
        # A text that is new, but like the others: passages of several of them.
        parts = [readout.tokens(row) for row in draw.integers(len(readout), size=6).tolist()]
        tokens_L = np.concatenate([part[:80] for part in parts])
        name = f"memory/added-{number:06d}"
        memory = DecodedMemory(name, _version(len(readout) + number), tokens_L, np.zeros(1, dtype=np.float32))
        began = time.perf_counter()
        overlay.add(memory)
        added.append(1000 * (time.perf_counter() - began))
        found += overlay.index.search(tokens_L[70:102], 1)[0].name == name
    for name in readout.names[:changes]:
        began = time.perf_counter()
        overlay.remove(name)
        removed.append(1000 * (time.perf_counter() - began))
    p50, p99 = np.percentile(added, [50, 99])
    return {
        "add_ms": float(p50),
        "add_p99_ms": float(p99),
        "remove_ms": float(np.median(removed)),
        "added_found": found / changes,
    }


def _figures(searcher: Any, tasks: Any, texts: Any, cues: Any) -> dict[str, float]:
    from dataclasses import asdict

    from tasks.retrieval import evaluate

    figures = evaluate(searcher, tasks, texts, cues=cues, candidates=CANDIDATES, timed_queries=TIMED)
    rate = _per_processor_second(lambda: searcher.search_many(cues, CANDIDATES), len(cues))
    repeated = _repeated_p99_ms(lambda cue: searcher.search(cue, CANDIDATES), cues[:TIMED])
    return {**asdict(figures), "queries_per_processor_second": rate, "repeated_p99_ms": repeated}


def _repeated_p99_ms(search: Callable[[np.ndarray], object], cues: list[np.ndarray]) -> float:
    """99 % of cues, each asked in several rounds and counted by its median.

    What the machine does to a run of neighbouring queries is left out, and what a cue itself costs stays in.
    """
    rounds = []
    for _ in range(ROUNDS):
        spent = []
        for cue in cues:
            began = time.perf_counter()
            search(cue)
            spent.append(1000 * (time.perf_counter() - began))
        rounds.append(spent)
    return float(np.percentile(np.median(rounds, axis=0), 99))


def _per_processor_second(work: Callable[[], Any], queries: int) -> float:
    """Queries in a second of processor time: what other programs do meanwhile counts little."""
    began = time.process_time()
    work()
    return queries / (time.process_time() - began)


def _asked(index: Any, queries: int) -> tuple[Any, Any, list[list[np.ndarray]]]:
    """Texts by name, tasks from test-split elements, and the cues at every share of changed tokens."""
    from tasks.corpus import element_split
    from tasks.retrieval import changed_cues, quote_tasks

    readout = index.readout
    texts = {name: readout.tokens(row) for row, name in enumerate(readout.names)}
    chosen = {name: ids for name, ids in texts.items() if element_split(name) == "test"}
    draw = np.random.default_rng(SEED)
    tasks = quote_tasks(
        chosen, count=queries, cue_tokens=CUE_TOKENS, continuation_tokens=ANSWER_TOKENS, generator=draw
    )
    changed = [changed_cues(task.cue, SHARES, index.vocab_size, draw) for task in tasks]
    return texts, tasks, [[copies[row] for copies in changed] for row in range(len(SHARES))]


def _sources(folder: str) -> Any:
    from tasks.retrieval import Charts, Readout, Sources
    from tasks.retrieval.arrays import mapped

    place = Path(folder)
    readout = Readout.from_bytes(mapped(place / "readout"))
    return Sources(readout, Charts.from_bytes(mapped(place / "charts")), None, None)


def _index(folder: str) -> Any:
    from tasks.retrieval import Index, Reranker

    reranker = Reranker.from_bytes((Path(folder) / "reranker").read_bytes())
    return Index(_sources(folder), reranker, reranker.search)


def _version(row: int) -> str:
    return hashlib.sha256(b"%d" % row).hexdigest()
