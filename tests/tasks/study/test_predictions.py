"""Sealed predictions are what they claim, or are refused; scores follow from them alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tasks.errors import BadPayload, BadQuestion
from tasks.hosts import Host
from tasks.programs import Episode, Family, Group, Split, groups, query_errors, support
from tasks.study import Cell, Prediction, Questioner
from tasks.study.predictions import encode_predictions, load_predictions
from tasks.study.scores import score, score_rule
from tests.tasks.study.conftest import PROGRAMS, STUDY

EPISODES = [Episode(groups(PROGRAMS, Split.DEVELOPMENT)[0], recipe) for recipe in (0, 3)]


def _prediction(episode: Episode, cell: Cell) -> Prediction:
    e0, e1, e2, e3 = support(episode, PROGRAMS).errors
    return Prediction(episode.name, cell.value, 0.1, 0.2, 0.3, 0.4, e0, e1, e2, e3, 0.5, 0.4)


ROWS = [_prediction(episode, cell) for episode in EPISODES for cell in Cell]


def test_predictions_come_back_and_are_scored_by_the_query_alone() -> None:
    sealed = load_predictions(encode_predictions(ROWS), EPISODES, PROGRAMS)
    samples = score("static", 5, EPISODES, sealed, PROGRAMS)

    assert len(samples) == 2 * len(Cell)
    query = query_errors(EPISODES[0], PROGRAMS)
    assert samples[0].error == pytest.approx(
        sum(p * q for p, q in zip((0.1, 0.2, 0.3, 0.4), query, strict=True))
    )
    assert (samples[0].choice, samples[0].greedy_error, samples[0].all_right) == (3, query[3], query[3] == 0)
    assert samples[-1].all_right
    assert samples[-1].greedy_error == 0


def test_the_rule_chooses_by_support_errors() -> None:
    for sample, episode in zip(score_rule(EPISODES, PROGRAMS), EPISODES, strict=True):
        errors = support(episode, PROGRAMS).errors
        assert sample.choice == errors.index(min(errors))
        assert sample.support_after == min(errors)


@pytest.mark.parametrize(
    "forge",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [replace(rows[0], episode="list/0/0/recipe-0"), *rows[1:]],
        lambda rows: [replace(rows[0], cell="other"), *rows[1:]],
        lambda rows: [replace(rows[0], p0=0.9), *rows[1:]],
        lambda rows: [replace(rows[0], p0=-0.1, p1=0.4), *rows[1:]],
        lambda rows: [replace(rows[0], p0=float("nan")), *rows[1:]],
        lambda rows: [replace(rows[0], e0=0.77), *rows[1:]],
        lambda rows: [replace(rows[0], after=float("inf")), *rows[1:]],
    ],
)
def test_predictions_that_are_not_of_these_episodes_are_refused(
    forge: Callable[[list[Prediction]], list[Prediction]],
) -> None:
    with pytest.raises(BadPayload):
        load_predictions(encode_predictions(forge(ROWS)), EPISODES, PROGRAMS)


def test_bytes_that_are_no_table_are_refused() -> None:
    with pytest.raises(BadPayload, match="a table of predictions"):
        load_predictions(b"PAR1", EPISODES, PROGRAMS)


def test_questions_share_a_prompt_within_a_group_and_end_every_candidate(
    host: Host, questioner: Questioner
) -> None:
    group = Group(Family.ARITHMETIC, 2, 3, clip=16)
    question = questioner.ask(group)
    told = questioner.tell(Episode(group, 0))

    assert all(ids[-1] == host.end and host.end not in ids[:-1] for ids in question.candidates)
    assert host.tokenizer.decode(question.candidates[1][:-1]) == " add 3, mul 2"
    assert told.candidates == question.candidates
    assert len(told.prompt_ids) > len(question.prompt_ids)


@pytest.mark.parametrize(
    ("limit", "what"), [("prompt_tokens", "prompt"), ("answer_tokens", "longest candidate")]
)
def test_a_prompt_or_candidate_that_is_too_long_is_refused_with_its_parameter(
    host: Host, limit: str, what: str
) -> None:
    short = Questioner(host.encode, host.end, PROGRAMS, STUDY.model_copy(update={limit: 16}))

    with pytest.raises(BadQuestion, match=rf"the {what} of .* raise study.{limit}"):
        short.ask(groups(PROGRAMS, Split.DEVELOPMENT)[0])
