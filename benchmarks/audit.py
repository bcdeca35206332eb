"""Time the leakage audit on synthetic documents, some of which are changed copies of others.

python -m benchmarks.audit                      52,809 documents, and an eighth of them beside it
python -m benchmarks.audit --documents 8000

Text is made of phrases drawn with Zipf frequencies, so that runs of tokens repeat as they do in text.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import measure
from benchmarks.figures import Section, markdown
from benchmarks.machine import describe, load
from tasks.audit import (
    AuditDocuments,
    AuditParams,
    Side,
    common_shingles,
    near_duplicates,
    shared_ngrams,
)

_VOCABULARY = 4096
_PHRASES = 200_000
_COPIES = 20
"""Every so many documents one is a copy of an earlier one."""
_SIDES = (0.5, 0.3, 0.05, 0.15)
_PARTS = {
    "13-grams": "ngrams_s",
    "near-duplicates": "near_duplicates_s",
    "processor time of both": "processor_s",
}
_MOST_S = 120
_MOST_MIB = 2048


def synthetic_documents(count: int, *, seed: int = 0) -> tuple[AuditDocuments, list[tuple[str, str]]]:
    """Documents of about 600 tokens, and the pairs (original, copy) by name; copies have up to 12 % of their
    tokens exchanged."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 12, _PHRASES)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = rng.choice(_VOCABULARY, starts[-1], p=_zipf(_VOCABULARY, 1.0)).astype(np.uint16)
    cumulated = np.cumsum(_zipf(_PHRASES, 0.9))
    sides = rng.choice(len(Side), count, p=_SIDES)
    texts: list[np.ndarray] = []
    copies: list[tuple[str, str]] = []
    for number in range(count):
        if number % _COPIES == _COPIES - 1:
            original = int(rng.integers(number))
            text = texts[original].copy()
            changed = rng.random(len(text)) < rng.uniform(0, 0.12)
            text[changed] = rng.integers(0, _VOCABULARY, int(changed.sum()))
            copies.append((f"d{original:06d}", f"d{number:06d}"))
        else:
            phrases = np.searchsorted(cumulated, rng.random(int(np.clip(rng.lognormal(4.35, 0.6), 12, 1000))))
            chosen = np.minimum(phrases, _PHRASES - 1)
            text = np.concatenate([tokens[starts[phrase] : starts[phrase + 1]] for phrase in chosen])
        texts.append(text)
    documents = AuditDocuments.of(
        (f"d{number:06d}", Side(int(sides[number])), text) for number, text in enumerate(texts)
    )
    return documents, copies


def _zipf(count: int, exponent: float) -> np.ndarray:
    weights = 1 / np.arange(1, count + 1) ** exponent
    return weights / weights.sum()


def audit(documents: int) -> dict[str, Any]:
    """Audit so many documents in this process: seconds of each part, and how many copies were found.

    A copy counts if it is on another side than its original and as similar as the threshold asks for.
    """
    params = AuditParams()
    made, copies = synthetic_documents(documents)
    began, processor_began = time.perf_counter(), time.process_time()
    shared = shared_ngrams(made, params.ngram_tokens)
    ngrams_s = time.perf_counter() - began
    found = near_duplicates(made, params)
    near_duplicates_s = time.perf_counter() - began - ngrams_s
    processor_s = time.process_time() - processor_began
    near = set(map(tuple, found.pair_K2.tolist()))
    place = {name: number for number, name in enumerate(made.names)}
    planted = np.array(
        [(place[one], place[other]) for one, other in copies if one in place and other in place]
    )
    planted = planted[made.side_D[planted[:, 0]] != made.side_D[planted[:, 1]]]
    common, union = common_shingles(made, planted, params.shingle_tokens)
    wanted = set(map(tuple, planted[common >= params.jaccard * union].tolist()))
    return {
        "documents": len(made),
        "tokens": len(made.tokens_N),
        "ngrams_s": ngrams_s,
        "near_duplicates_s": near_duplicates_s,
        "seconds": ngrams_s + near_duplicates_s,
        "processor_s": processor_s,
        "shared": int((shared.by_sides_DM.sum(0)[[m for m in range(16) if m.bit_count() > 1]]).sum()),
        "candidates": found.candidates,
        "compared": found.compared,
        "cut_buckets": found.cut_buckets,
        "near": len(near),
        "planted": len(wanted),
        "found": len(wanted & near),
    }


def main() -> int:
    """Measure both sizes, print JSON or Markdown; 0 if every threshold is met."""
    options = _options()
    before = load()
    section = Section(f"Leakage audit, {options.documents:,} documents")
    runs = [
        measure("benchmarks.audit:audit", documents=n) for n in (options.documents // 8, options.documents)
    ]
    small, full = runs
    for run in runs:
        size = f"{run['documents']:,} documents, {run['tokens'] / 1e6:.1f} M tokens"
        for part, key in _PARTS.items():
            section.figure(f"{part}, {size}", "s").add(run[key], run["rss"])
    section.require("seconds in all", full["seconds"], "s", most=_MOST_S)
    section.require("peak memory", full["rss"], "MiB", most=_MOST_MIB)
    section.require("planted copies found", full["found"] / full["planted"], least=0.99)
    growth = (full["processor_s"] / full["tokens"]) / (small["processor_s"] / small["tokens"])
    section.require("processor time a token, whole / eighth", growth)
    section.notes.append(
        f"{full['planted']:,} copies at or above the threshold, {full['found']:,} found; "
        f"{full['near']:,} near-duplicates of {full['compared']:,} pairs compared, "
        f"{full['candidates']:,} proposed; {full['cut_buckets']:,} buckets cut"
    )
    section.notes.append(f"load of the machine {before} before, {load()} after")
    report = {"machine": describe(options.work), "runs": runs, **section.to_dict()}
    print(json.dumps(report, indent=1) if options.json else "\n".join(markdown(report)))
    return int(any(one.verdict == "FAIL" for one in section.requirements))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the leakage audit on synthetic documents.")
    parser.add_argument("--documents", type=int, default=52_809)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="scratch space")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
