"""Episodes: feedback and score come from different inputs, drawn once and for all."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.programs import (
    Episode,
    Family,
    Group,
    ProgramsParams,
    Split,
    answer,
    episodes,
    error_fractions,
    feedback_prompt,
    groups,
    prompt,
    query_errors,
    rule_choice,
    support,
)
from tasks.programs.episodes import _inputs

PARAMS = ProgramsParams()
DEVELOPMENT = groups(PARAMS, Split.DEVELOPMENT)
EPISODES = st.builds(Episode, st.sampled_from(DEVELOPMENT), st.integers(0, 3), draw=st.integers(0, 1000))


@given(EPISODES)
def test_inputs_are_different_and_inside_the_ranges(episode: Episode) -> None:
    inputs = _inputs(episode, PARAMS)

    assert len(inputs) == len(set(inputs)) == 24
    for value in inputs:
        if isinstance(value, int):
            assert episode.group.family is Family.ARITHMETIC
            assert abs(value) <= 48
        else:
            assert len(value) == 6
            assert max(map(abs, value)) <= 12


@given(EPISODES)
def test_feedback_is_of_the_first_inputs_and_the_score_of_the_others(episode: Episode) -> None:
    inputs, candidates = _inputs(episode, PARAMS), episode.group.candidates
    feedback = support(episode, PARAMS)

    assert feedback.inputs == inputs[:4]
    assert feedback.errors == error_fractions(candidates, candidates[episode.recipe], inputs[:4])
    assert query_errors(episode, PARAMS) == error_fractions(
        candidates, candidates[episode.recipe], inputs[4:]
    )
    assert feedback.errors[episode.recipe] == query_errors(episode, PARAMS)[episode.recipe] == 0


def test_visits_and_recipes_have_inputs_of_their_own() -> None:
    group = DEVELOPMENT[0]
    drawn = {_inputs(Episode(group, recipe, draw), PARAMS) for recipe in range(4) for draw in range(3)}

    assert len(drawn) == 12
    assert _inputs(Episode(group, 0), PARAMS) == _inputs(Episode(group, 0), ProgramsParams())


def test_all_recipes_of_a_group_are_episodes_of_its_split() -> None:
    found = episodes(DEVELOPMENT)

    assert len(found) == len({episode.name for episode in found}) == 64


def test_the_rule_takes_the_lowest_error_and_of_several_the_first() -> None:
    assert rule_choice((0.5, 0.0, 0.25, 0.0)) == 1


def test_the_rule_is_nearly_always_right() -> None:
    found = episodes(groups(PARAMS, Split.TRAIN))
    errors = [query_errors(one, PARAMS)[rule_choice(support(one, PARAMS).errors)] for one in found]

    assert sum(errors) / len(errors) < 0.05


def test_a_prompt_holds_configuration_and_candidates_and_nothing_of_the_episode() -> None:
    group = Group(Family.ARITHMETIC, 2, 3, clip=16)

    assert prompt(group) == (
        "Family: arithmetic\nScale 2, offset 3, clip -16 16\n"
        "Candidates:\n1. mul 2, add 3\n2. add 3, mul 2\n3. clip -16 16, mul 2, add 3\n"
        "4. mul 2, clip -16 16, add 3\nProgram:"
    )
    assert answer(group.candidates[1]) == " add 3, mul 2"


def test_feedback_in_words_lists_inputs_and_what_each_candidate_got() -> None:
    group = next(group for group in DEVELOPMENT if group.family is Family.LIST)
    feedback = support(Episode(group, 3), PARAMS)
    text = feedback_prompt(group, feedback)

    assert text.startswith(prompt(group).removesuffix("Program:"))
    first = " ".join(map(str, feedback.inputs[0]))
    assert f"\nTest inputs: {first}; " in text
    assert text.endswith("\n4. right right right right, 0 of 4 wrong\nProgram:")
