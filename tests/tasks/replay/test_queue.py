"""The order of predictions and feedback, and that no prompt ever depends on a label to come."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tasks.replay.cases import CaseMemory
from tasks.replay.jobs import LABELS, Job
from tasks.replay.params import CaseParams
from tasks.replay.prompts import causal_prompts
from tasks.replay.queue import events, merged
from tests.tasks.replay.conftest import SECOND, START, job

NAMES = st.sampled_from(["tests", "lint"])


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    made = []
    for number in draw(st.lists(st.integers(0, 40), max_size=14, unique=True)):
        start = draw(st.integers(0, 6))
        length = draw(st.integers(0, 4))
        made.append(
            job(
                number,
                name=draw(NAMES),
                commit=draw(st.sampled_from(["a1", "b2"])),
                started_us=START + start * SECOND,
                completed_us=START + (start + length) * SECOND,
                label=draw(st.sampled_from(LABELS)),
            )
        )
    return made


@given(job_lists())
def test_every_job_is_predicted_once_before_its_label_arrives_once(made: list[Job]) -> None:
    predicted: list[str] = []
    learned: list[str] = []
    for event in events(made):
        ids = [one.id for one in event.jobs]
        if event.kind == "learn":
            assert set(ids) <= set(predicted)
        (predicted if event.kind == "predict" else learned).extend(ids)
    assert sorted(predicted) == sorted(learned) == sorted(one.id for one in made)


@given(job_lists())
def test_at_one_timestamp_predictions_come_first_and_completions_are_one_batch_by_id(made: list[Job]) -> None:
    happening = events(made)
    keys = [(event.time_us, event.kind == "learn") for event in happening]
    assert keys == sorted(set(keys))
    for event in happening:
        numbers = [int(one.id) for one in event.jobs]
        assert numbers == sorted(numbers)
        assert {one.started_us if event.kind == "predict" else one.completed_us for one in event.jobs} == {
            event.time_us
        }


@given(job_lists())
def test_merging_changes_neither_order_nor_batches(made: list[Job]) -> None:
    happening = events(made)
    flat = [(event.kind, one.id) for event in happening for one in event.jobs]
    assert [(event.kind, one.id) for event in merged(happening) for one in event.jobs] == flat
    assert [event for event in merged(happening) if event.kind == "learn"] == [
        event for event in happening if event.kind == "learn"
    ]


@given(job_lists(), st.sampled_from(LABELS), st.integers(0, 5))
def test_no_prompt_depends_on_a_label_or_completion_that_comes_later(
    made: list[Job], label: str, later: int
) -> None:
    def prompts(of: list[Job]) -> dict[str, object]:
        return dict(causal_prompts(events(of), {"octo/repo": CaseMemory(16, 16384)}, CaseParams()))

    before = prompts(made)
    for changed in made:
        other = replace(changed, label=label, completed_us=changed.completed_us + later * SECOND)
        after = prompts([other if one is changed else one for one in made])
        for one in made:
            # Also at the moment of completion itself: predictions come first.
            if one.started_us <= changed.completed_us:
                assert after[one.id] == before[one.id]


def test_ids_that_are_numbers_are_ordered_as_numbers_before_all_others() -> None:
    made = [replace(job(1), id=name) for name in ("b", "10", "9", "a", "009")]
    [start, _] = events(made)
    assert [one.id for one in start.jobs] == ["009", "9", "10", "a", "b"]
