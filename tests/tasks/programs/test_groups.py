"""Groups are split once and for all, and their four programs are four functions."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.errors import TooFewGroups
from tasks.programs import Family, ListParams, ProgramsParams, Split, execute, groups
from tasks.programs.groups import Group, reserved_groups

PARAMS = ProgramsParams()


def test_splits_have_the_sizes_of_the_protocol_in_each_family() -> None:
    for family in Family:
        sizes = [sum(group.family is family for group in groups(PARAMS, split)) for split in Split]
        assert sizes == [16, 8, 2]
        assert sum(group.family is family for group in reserved_groups(PARAMS)) == 8


@given(st.integers(0, 2**40))
def test_no_group_is_in_two_splits_and_none_that_opens_is_reserved(seed: int) -> None:
    params = ProgramsParams(seed=seed, distinct=False)
    found = [*reserved_groups(params), *(group for split in Split for group in groups(params, split))]

    assert len({group.name for group in found}) == len(found) == 2 * params.groups


def test_the_split_follows_from_the_seed() -> None:
    again, other = ProgramsParams(), ProgramsParams(seed=1)

    assert groups(again, Split.TRAIN) == groups(PARAMS, Split.TRAIN)
    assert groups(other, Split.TRAIN) != groups(PARAMS, Split.TRAIN)


def test_a_smaller_development_split_keeps_the_training_groups() -> None:
    smaller = ProgramsParams(development=2)

    assert groups(smaller, Split.TRAIN) == groups(PARAMS, Split.TRAIN)
    assert set(groups(smaller, Split.DEVELOPMENT)) < set(groups(PARAMS, Split.DEVELOPMENT))


def test_the_four_programs_of_an_arithmetic_group_are_four_functions() -> None:
    for split in Split:
        for group in groups(PARAMS, split)[: PARAMS.preflight]:
            outputs = [[execute(one, value) for value in range(-48, 49)] for one in group.candidates]
            assert all(one != other for one, other in combinations(outputs, 2))


def test_groups_that_leave_nothing_to_choose_between_are_kept_on_request() -> None:
    wide = ListParams(minimum=30)
    everything = ProgramsParams(distinct=False, lists=wide, train=300, development=20, preflight=10)
    assert any(group.second == 0 for group in groups(everything, Split.TRAIN))
    assert not any(group.second == 0 for group in _arithmetic(Split.TRAIN))
    assert not any(group.second == 6 for group in groups(PARAMS, Split.TRAIN) if group.family is Family.LIST)


def _arithmetic(split: Split) -> list[Group]:
    return [group for group in groups(PARAMS, split) if group.family is Family.ARITHMETIC]


def test_ranges_that_hold_too_few_groups_are_refused_with_the_count() -> None:
    with pytest.raises(TooFewGroups, match="the list family has 65 groups and the splits ask for 78"):
        groups(ProgramsParams(train=60), Split.TRAIN)


def test_more_inputs_than_there_are_are_refused() -> None:
    with pytest.raises(ValidationError, match="98 different inputs are asked for and arithmetic has 97"):
        ProgramsParams(support=8, query=90)
    with pytest.raises(ValidationError, match="too few lists"):
        ProgramsParams(lists=ListParams(magnitude=1, entries=2))
