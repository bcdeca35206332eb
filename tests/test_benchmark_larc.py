"""The benchmark of the LARC learner: its contenders compute the same, so that speeds may be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.larc import Bench, main
from tasks.larc import Learner, new_slow_state
from tests.tasks.larc.conftest import WIDTH, close, llama, make_questions
from tests.tiny_host import write_tiny_host


def test_all_contenders_compute_the_same() -> None:
    host = llama()
    costs = torch.rand(5, 4, generator=torch.Generator().manual_seed(1))
    slow = new_slow_state(WIDTH, seed=2, deviation=0.3)
    bench = Bench(host, Learner(host, tokens=96), slow, make_questions(5), costs)
    trees = bench.trees()
    assert not close(trees, bench.forward_trees(), 1e-3)
    for together in (1, 2):
        assert close(bench.padded(together), trees)
        assert close(bench.forward_padded(together), bench.forward_trees())
    assert close(bench.forward_plain(), bench.forward_trees())


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """The benchmark sets how many threads it takes."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_measures_a_folder_and_keeps_the_report(tmp_path: Path) -> None:
    host = write_tiny_host(tmp_path / "host")
    out = tmp_path / "larc.json"
    code = main(
        ["--host", str(host), "--episodes", "2", "--runs", "1", "--dtype", "float32", "--out", str(out)]
    )
    report = json.loads(out.read_text())
    held = {one["name"]: one for one in report["section"]["requirements"]}
    assert held["energies apart after two steps, float32"]["verdict"] == "pass"
    assert len(report["prompt_tokens"]) == len(report["tree_tokens"]) == 2
    assert "packed trees / padded four-row batches" in out.with_suffix(".md").read_text()
    assert code == int(any(one["verdict"] == "FAIL" for one in held.values()))
