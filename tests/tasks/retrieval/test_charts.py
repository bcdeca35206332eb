"""Charts find every kept run, survive a round trip bit for bit, and may stay in a mapped file."""

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.errors import BadPayload
from tasks.retrieval import ChartParams, Charts, Index, Sources, quote_tasks
from tasks.retrieval.charts import Chart, spread

keys = st.lists(st.integers(0, 12), max_size=50).map(lambda values: np.array(values, dtype=np.uint64))


@given(keys, keys, st.integers(1, 5))
def test_a_probe_finds_the_first_postings_of_a_key_in_store_order(
    stored: np.ndarray, probed: np.ndarray, cap: int
) -> None:
    hits = Chart.of(stored, np.arange(len(stored))).probe(probed, cap)
    found = list(zip(hits.probe_H.tolist(), hits.position_H.tolist(), hits.found_H.tolist(), strict=True))
    expected = []
    for number, key in enumerate(probed.tolist()):
        places = [place for place, other in enumerate(stored.tolist()) if other == key]
        expected += [(number, place, len(places)) for place in places[:cap]]
    assert found == expected


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), max_size=12))
def test_spread_lists_the_members_of_every_range(ranges: list[tuple[int, int]]) -> None:
    start, count = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    owner, member = spread(start, count)
    assert list(zip(owner.tolist(), member.tolist(), strict=True)) == [
        (number, begin + step) for number, (begin, length) in enumerate(ranges) for step in range(length)
    ]


def test_charts_made_again_and_read_back_are_the_same_bytes(sources: Sources) -> None:
    readout, charts = sources.readout, sources.charts
    again = Charts.of(readout.tokens_N.copy(), readout.start_E1, len(charts.bag.idf_V), charts.params)
    assert again.to_bytes() == charts.to_bytes() == Charts.from_bytes(charts.to_bytes()).to_bytes()


def test_charts_in_a_mapped_file_answer_alike(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "charts.safetensors"
    path.write_bytes(index.sources.charts.to_bytes())
    with path.open("rb") as file:
        mapped = Charts.from_bytes(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    own = index.sources
    other = Index(Sources(own.readout, mapped, own.dense, own.encoder), index.reranker, index.params)
    texts = {name: index.readout.tokens(row) for name, row in index.readout.row_of.items()}
    tasks = quote_tasks(
        texts, count=20, cue_tokens=24, continuation_tokens=4, generator=np.random.default_rng(3)
    )
    for task in tasks:
        ours, theirs = index.search(task.cue, 3), other.search(task.cue, 3)
        assert [(c.name, c.offset, c.score) for c in ours] == [(c.name, c.offset, c.score) for c in theirs]
    assert not mapped.ngram.key_K.flags.writeable


def test_a_payload_that_holds_something_else_is_refused(sources: Sources) -> None:
    charts = sources.charts.to_bytes()
    for payload in (b"", b"\x00" * 40, charts[:100], charts[:-8], sources.readout.to_bytes()):
        with pytest.raises(BadPayload):
            Charts.from_bytes(payload)


def test_a_winnow_that_reaches_into_the_next_element_is_refused() -> None:
    with pytest.raises(ValidationError, match="ngram_winnow"):
        ChartParams(ngram_tokens=4, ngram_winnow=5)
