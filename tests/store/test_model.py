"""Random processes, races, faults and deaths against a plain model of what a store promises.

Hypothesis writes programs for a few processes; a seeded scheduler interleaves them call by call; faults meet
them by a script; and `truth` judges every write and every answer. Nothing published is lost, nothing is
visible twice, no conflict is invented, no wrong byte is returned, tags never move, and `verify` is clean.
`make test-nightly` runs many times as many schedules, other ones every night.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from store import checkpoint, conditional
from tests.store.faulty import Fault
from tests.store.model.inline import without_threads
from tests.store.model.processes import Program, Trouble, Workplace
from tests.store.model.themes import BEGINNINGS, THEMES, Beginning

SCHEDULES = 2000 if settings.get_current_profile_name() == "nightly" else 40

_TROUBLES = st.lists(
    st.builds(Trouble, st.sampled_from(Fault), st.integers(0, 25), st.sampled_from((1, 2, 30))), max_size=2
)
_PROGRAMS = st.sampled_from(THEMES).flatmap(
    lambda theme: st.lists(
        st.builds(Program, st.lists(theme, min_size=1, max_size=3), _TROUBLES), min_size=1, max_size=3
    )
)


class Processes(RuleBasedStateMachine):
    """Up to three processes at a time on one storage."""

    def __init__(self) -> None:
        super().__init__()
        self.workplace = Workplace()

    @initialize(beginning=st.sampled_from(BEGINNINGS))
    def begin(self, beginning: Beginning) -> None:
        for operations, hours in beginning:
            self.workplace.race([Program(operations)], seed=0)
            self.workplace.forward(hours)

    @rule(programs=_PROGRAMS, seed=st.integers(0, 2**32 - 1))
    def race(self, programs: list[Program], seed: int) -> None:
        self.workplace.race(programs, seed=seed)

    @rule(number=st.integers(0, 2))
    def restart(self, number: int) -> None:
        self.workplace.restart(number)

    @rule(hours=st.sampled_from((0, 1, 26, 50)))
    def forward(self, hours: int) -> None:
        self.workplace.forward(hours)

    def teardown(self) -> None:
        self.workplace.finish()


@pytest.fixture
def quick() -> Iterator[None]:
    """Let retries not wait, checkpoints be due early, and everything happen on scheduled threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditional, "_FIRST_PAUSE_S", 0.0)
        patch.setattr(checkpoint, "BLOCK", 3)
        without_threads(patch)
        yield


@pytest.mark.usefixtures("quick")
def test_a_store_keeps_its_promises_under_every_schedule() -> None:
    run_state_machine_as_test(
        Processes,
        settings=settings(
            max_examples=SCHEDULES,
            stateful_step_count=12,
            deadline=None,
            derandomize=settings().derandomize,
            suppress_health_check=list(HealthCheck),
        ),
    )
