"""The benchmark of addressing: texts like their source, and parts that fit one another."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.addressing import summary
from benchmarks.child import measure
from benchmarks.scale_text import REPEATED, synthetic_texts

SOURCE = [np.random.default_rng(row).zipf(1.3, size=3_000).clip(max=499) for row in range(4)]


def _made(repeated: float) -> tuple[np.ndarray, np.ndarray]:
    return synthetic_texts(SOURCE, elements=300, tokens=60_000, repeated=repeated, seed=3)


def test_every_pair_of_tokens_stands_in_the_source_and_is_as_frequent_there() -> None:
    tokens_N, start_E1 = _made(0.0)
    source_N = np.concatenate(SOURCE)
    known = set(zip(source_N.tolist(), np.roll(source_N, -1).tolist(), strict=True))
    within = np.ones(len(tokens_N) - 1, dtype=bool)
    within[start_E1[1:-1] - 1] = False
    made = np.stack([tokens_N[:-1], tokens_N[1:]], axis=1)[within]
    assert {tuple(pair) for pair in made.tolist()} <= known
    ours, theirs = (np.bincount(ids, minlength=500) / len(ids) for ids in (tokens_N, source_N))
    assert np.abs(ours - theirs).max() < 0.02
    assert 50_000 < len(tokens_N) < 70_000


def test_equal_seeds_give_equal_texts_and_passages_are_repeated() -> None:
    first, start_E1 = _made(0.2)
    assert (first == _made(0.2)[0]).all()
    runs: dict[bytes, set[int]] = {}
    for row, (begin, end) in enumerate(pairwise(start_E1.tolist())):
        for at in range(begin, end - REPEATED + 1):
            runs.setdefault(first[at : at + REPEATED].tobytes(), set()).add(row)
    shared = [rows for rows in runs.values() if len(rows) > 1]
    assert len(shared) >= 20


@pytest.mark.nightly
def test_the_parts_find_what_the_summary_shows(tmp_path: Path) -> None:
    parts: dict[str, dict[str, Any]] = {
        "write_texts": {"elements": 400, "tokens": 120_000, "vocab_size": 1_000, "repeated": 0.05},
        "build": {"vocab_size": 1_000},
        "fit": {},
        "search": {"queries": 60},
        "bm25": {"queries": 60},
        "change": {"changes": 5},
    }
    found = {
        name: measure(f"benchmarks.addressing_runs:{name}", folder=str(tmp_path), **arguments)
        for name, arguments in parts.items()
    }
    section = summary(found).to_dict()
    values = {one["name"]: one["value"] for one in section["requirements"]}
    assert values["added texts found at rank one"] == 1.0
    assert values["build of the charts"] > 0
    assert found["search"]["by_share"]["0.0"]["candidate_recall"] >= 0.98
    assert set(found["bm25"]["by_share"]) == {"0.0", "0.1", "0.2", "0.3"}
