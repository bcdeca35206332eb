"""Candidate programs compute what their texts say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.programs import Candidate, Family, Group, Step, error_fractions, execute

NUMBERS = st.integers(-48, 48)
LISTS = st.lists(st.integers(-12, 12), min_size=6, max_size=6).map(tuple)
ARITHMETIC = Group(Family.ARITHMETIC, 2, 3, clip=16)
LIST = Group(Family.LIST, -1, 3, suffix=(4, -5))


def test_the_example_of_the_source_text() -> None:
    inputs = [2, 24, -20, 5]
    candidates = ARITHMETIC.candidates

    assert [execute(candidates[0], value) for value in inputs] == [7, 51, -37, 13]
    assert error_fractions(candidates, candidates[0], inputs) == (0, 1, 0.5, 0.5)
    assert execute(candidates[0], 3) == 9


@given(NUMBERS)
def test_arithmetic_recipes_apply_from_left_to_right(value: int) -> None:
    def clip(number: int) -> int:
        return min(max(number, -16), 16)

    outputs = [execute(one, value) for one in ARITHMETIC.candidates]
    assert outputs == [2 * value + 3, 2 * (value + 3), 2 * clip(value) + 3, clip(2 * value) + 3]


@given(LISTS)
def test_list_recipes_apply_from_left_to_right(value: tuple[int, ...]) -> None:
    def kept(entries: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(entry for entry in entries if entry >= -1)

    outputs = [execute(one, value) for one in LIST.candidates]
    assert outputs == [
        kept(value)[:3],
        kept(value[:3]),
        (*sorted(kept(value))[:3], 4, -5),
        tuple(sorted(kept((*value, 4, -5))))[:3],
    ]


def test_texts_are_complete_programs() -> None:
    assert [one.text for one in ARITHMETIC.candidates] == [
        "mul 2, add 3",
        "add 3, mul 2",
        "clip -16 16, mul 2, add 3",
        "mul 2, clip -16 16, add 3",
    ]
    assert [one.text for one in LIST.candidates][2:] == [
        "filter_min -1, sort, take 3, append 4 -5",
        "append 4 -5, filter_min -1, sort, take 3",
    ]


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(0, 3))
def test_a_target_never_errs_on_its_own_outputs(inputs: list[int], target: int) -> None:
    errors = error_fractions(ARITHMETIC.candidates, ARITHMETIC.candidates[target], inputs)

    assert errors[target] == 0
    assert all(0 <= error <= 1 for error in errors)


def test_a_primitive_of_the_other_family_is_none() -> None:
    with pytest.raises(KeyError):
        execute(Candidate((Step("sort"),)), 3)
