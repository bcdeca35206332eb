"""Trust with labels that come late and in bursts: what the defaults cost where the kept state is bad."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.replay.controller import Trust
from tasks.replay.experts import INDEX
from tasks.replay.hedge import half_brier
from tasks.replay.jobs import Job
from tasks.replay.params import ControllerParams
from tasks.replay.queue import events
from tests.tasks.replay.conftest import SECOND, START, job

PARAMS = ControllerParams()
Read = Callable[[Job, str], np.ndarray]


def bursts() -> list[Job]:
    """800 jobs, twenty to a commit, which start together and end together a few commits later."""
    draw = np.random.default_rng(5)
    made = []
    for commit in range(40):
        cancelled = draw.random() < 0.25
        for number in range(20):
            label = "cancelled" if cancelled else draw.choice(["success", "failure"], p=[0.95, 0.05])
            start = START + commit * 60 * SECOND
            end = start + int(draw.choice([30, 200, 300])) * SECOND
            identity = {"commit": f"c{commit}", "label": str(label)}
            made.append(job(20 * commit + number, started_us=start, completed_us=end, **identity))
    return made


def sure(label: str) -> np.ndarray:
    chances = np.full(4, 0.01)
    chances[INDEX[label]] = 0.97
    return chances


def base(_: Job, __: str) -> np.ndarray:
    return np.array([0.72, 0.04, 0.22, 0.02])


READS: dict[str, Read] = {
    "always wrong": lambda one, last: sure("other"),
    "the last label": lambda one, last: sure(last),
    "always right": lambda one, last: sure(one.label),
    "as good": base,
}


def lost(read: Read) -> tuple[float, float]:
    """Mean half-Brier of the mixture and of the slow read alone."""
    trust, last, pending = Trust.new(PARAMS), "success", {}
    mixed, slow = [], []
    for event in events(bursts()):
        for one in event.jobs:
            if event.kind == "predict":
                pending[one.id] = (read(one, last), base(one, last), trust)
                continue
            kept_C, slow_C, then = pending[one.id]
            rows_KC = np.stack([kept_C, slow_C, then.mix(kept_C, slow_C)])
            losses = half_brier(rows_KC, np.full(3, INDEX[one.label]))
            trust = trust.learn(float(losses[0]), float(losses[1]), trust.era, PARAMS)
            mixed.append(losses[2])
            slow.append(losses[1])
            last = one.label
    return float(np.mean(mixed)), float(np.mean(slow))


@pytest.mark.parametrize("name", ["always wrong", "the last label", "as good"])
def test_a_kept_state_that_is_no_better_costs_less_than_two_thousandths(name: str) -> None:
    mixed, slow = lost(READS[name])
    assert mixed <= slow + 0.002


def test_a_kept_state_that_is_better_is_soon_trusted() -> None:
    mixed, slow = lost(READS["always right"])
    assert mixed < 0.4 * slow
