"""The benchmark of the LARC learner: its contenders compute the same, so that speeds may be compared."""

from __future__ import annotations

import torch

from benchmarks.larc import Bench
from tasks.larc import Learner, new_slow_state
from tests.tasks.larc.conftest import WIDTH, close, llama, make_questions


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
