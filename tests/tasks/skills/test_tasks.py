"""Tasks: reproducible, right, and with phrasings and values that their split has for itself."""

import pytest
from pydantic import ValidationError

from tasks.skills import Operation, SkillTask, TaskMaker, compile_operation, execute, parse_operands
from tasks.skills.params import Magnitudes, PhraseParams
from tasks.skills.phrasing import phrasings
from tasks.skills.program import Division
from tasks.skills.tasks import held_out

CASES = [
    (split, range_, division)
    for split, range_ in (
        ("train", "train"),
        ("test", "train"),
        ("test", "disjoint"),
        ("validation", "validation"),
    )
    for division in Division
]


@pytest.mark.parametrize(("split", "range_", "division"), CASES)
def test_the_parser_and_the_machine_give_the_true_answer_of_every_task(
    split: str, range_: str, division: Division
) -> None:
    made = TaskMaker(PhraseParams(), division, split, range_).make(500, seed=4)  # type: ignore[arg-type]

    for task in made:
        operands = parse_operands(task.prompt)
        done = execute(compile_operation(task.operation, division), (operands.first, operands.second))
        assert done.value == task.answer, task


def make(split: str, range_: str, seed: int = 4) -> list[SkillTask]:
    return TaskMaker(PhraseParams(), Division.TRUNCATE, split, range_).make(1000, seed=seed)  # type: ignore


def test_tasks_follow_from_their_seed() -> None:
    assert make("test", "disjoint") == make("test", "disjoint")
    assert make("test", "disjoint") != make("test", "disjoint", seed=5)


def test_tasks_mix_operations_words_symbols_signs_and_magnitudes() -> None:
    made = make("test", "disjoint")
    assert {task.operation for task in made} == set(Operation)
    assert {len(str(abs(task.first))) for task in made} == set(range(5, 11))
    assert any(task.first < 0 for task in made)
    assert any(task.answer < 0 for task in made)
    assert any("million" in task.prompt for task in made)
    assert any("\u00d7" in task.prompt for task in made)
    assert any(" times " in task.prompt for task in made)


def test_no_value_and_no_phrasing_of_a_test_is_trained_on() -> None:
    trained = [task for seed in range(5) for task in make("train", "train", seed)]
    inside, outside = make("test", "train"), make("test", "disjoint")
    pairs = {(task.first, task.second) for task in trained}
    assert pairs.isdisjoint((task.first, task.second) for task in inside)
    assert all(held_out(task.first, task.second) for task in inside)
    largest = max(abs(number) for task in trained for number in (task.first, task.second))
    assert largest < min(abs(number) for task in outside for number in (task.first, task.second))
    templates = {split: {p.template for p in phrasings(split)} for split in ("train", "validation", "test")}
    assert templates["test"].isdisjoint(templates["train"] | templates["validation"])
    assert templates["validation"].isdisjoint(templates["train"])
    assert {task.prompt for task in trained}.isdisjoint(task.prompt for task in inside)


def test_ranges_that_overlap_are_refused() -> None:
    with pytest.raises(ValidationError, match="overlap"):
        PhraseParams(disjoint=Magnitudes(low=500, high=5_000))
    with pytest.raises(ValueError, match="2 magnitudes, too few to hold out"):
        PhraseParams(train=Magnitudes(low=0, high=1))
    with pytest.raises(ValidationError, match="the first must be smaller"):
        Magnitudes(low=5, high=5)
