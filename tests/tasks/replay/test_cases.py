"""The bounded memory of cases, and the prompts that show them."""

import pytest

from tasks.errors import BadPayload
from tasks.replay.cases import Case, CaseMemory
from tasks.replay.params import CaseParams
from tasks.replay.prompts import job_prompts
from tests.tasks.replay.conftest import job


def case(name: str, label: str = "success") -> Case:
    return Case("7", "push", name, "c0ffee", label)


def test_the_oldest_case_goes_first_by_number_and_by_bytes() -> None:
    memory = CaseMemory(3, 16384, (case(str(n)) for n in range(5)))
    assert [one.name for one in memory.cases] == ["2", "3", "4"]
    tight = CaseMemory(100, 3 * case("x").size, (case(str(n)) for n in range(5)))
    assert [one.name for one in tight.cases] == ["2", "3", "4"]
    assert tight.size == sum(one.size for one in tight.cases) <= 3 * case("x").size


def test_a_case_larger_than_the_memory_empties_it() -> None:
    memory = CaseMemory(4, 200, [case("small")])
    memory.add(case("x" * 300))
    assert (memory.cases, memory.size) == ((), 0)


def test_the_latest_of_the_same_workflow_and_job_are_shown_before_other_recent_ones() -> None:
    memory = CaseMemory(
        16, 16384, [case("tests", "failure"), case("a"), case("tests", "other"), case("b"), case("c")]
    )
    assert [one.label for one in memory.shown(job(), 2)] == ["failure", "other"]
    assert [one.name for one in memory.shown(job(name="a"), 2)] == ["a", "c"]
    assert [one.name for one in memory.shown(job(name="new"), 2)] == ["b", "c"]
    assert [one.name for one in memory.shown(job(workflow_id="8"), 1)] == ["c"]
    assert memory.shown(job(), 0) == ()


def test_a_prompt_is_the_cases_oldest_first_and_then_the_open_line() -> None:
    memory = CaseMemory(16, 16384, [case("tests", "failure"), case("lint")])
    found = job_prompts(job(), memory, CaseParams())
    assert found.plain.split("\n") == ["octo/repo CI", '7 push "tests" at c0ffee0:']
    assert found.memory.split("\n") == [
        "octo/repo CI",
        '7 push "tests" at c0ffee: failure',
        '7 push "lint" at c0ffee: success',
        '7 push "tests" at c0ffee0:',
    ]


def test_fields_in_a_prompt_are_one_short_line_each() -> None:
    found = job_prompts(job(name="a\nb\t" + "x" * 200), CaseMemory(1, 4096), CaseParams(field_characters=20))
    assert found.plain.split("\n")[1] == f'7 push "a b {"x" * 16}" at c0ffee0:'


def test_a_memory_is_restored_from_its_record_and_from_no_other() -> None:
    memory = CaseMemory(3, 16384, (case(str(n)) for n in range(5)))
    again = CaseMemory.from_record(memory.record(), 3, 16384)
    assert (again.cases, again.size) == (memory.cases, memory.size)
    for bad in (None, [1], [{"name": "x"}], [{**memory.record()[0], "label": "fine"}], memory.record() * 2):
        with pytest.raises(BadPayload, match="case memory"):
            CaseMemory.from_record(bad, 3, 16384)
