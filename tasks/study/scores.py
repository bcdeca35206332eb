"""Scoring sealed predictions with the queries, and the rows that all figures follow from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.programs import Episode, ProgramsParams, query_errors, rule_choice, support
from tasks.study.predictions import Cell, Prediction

RULE = "rule"
UNTRAINED = "untrained"


@dataclass(frozen=True)
class SelectionSample:
    """One episode in one cell under one slow state; `arm` is an objective, `untrained`, or `rule`.

    `error` is the expected share of query inputs that the policy's program gets wrong, `greedy_error` that of
    the most likely one (`choice`, of several the first), `all_right` says that it gets none wrong. `p` are
    the policy's probabilities, `q` the candidates' query errors.
    """

    arm: str
    seed: int
    family: str
    group: str
    recipe: int
    cell: str
    error: float
    choice: int
    greedy_error: float
    all_right: bool
    support_before: float
    support_after: float
    p0: float
    p1: float
    p2: float
    p3: float
    q0: float
    q1: float
    q2: float
    q3: float


def score(
    arm: str,
    seed: int,
    found: Sequence[Episode],
    sealed: Mapping[tuple[str, Cell], Prediction],
    programs: ProgramsParams,
) -> list[SelectionSample]:
    """The samples of one slow state's predictions."""
    samples = []
    for episode in found:
        query = query_errors(episode, programs)
        for cell in Cell:
            row = sealed[episode.name, cell]
            samples.append(
                _sample(arm, seed, episode, cell.value, row.probabilities, query, row.before, row.after)
            )
    return samples


def score_rule(found: Sequence[Episode], programs: ProgramsParams) -> list[SelectionSample]:
    """The symbolic rule on the same episodes: all its mass on the candidate of the lowest support error."""
    samples = []
    for episode in found:
        errors = support(episode, programs).errors
        chosen = rule_choice(errors)
        mass = tuple(float(place == chosen) for place in range(len(errors)))
        query = query_errors(episode, programs)
        samples.append(
            _sample(RULE, 0, episode, RULE, mass, query, sum(errors) / len(errors), errors[chosen])
        )
    return samples


def _sample(
    arm: str,
    seed: int,
    episode: Episode,
    cell: str,
    probabilities: tuple[float, ...],
    query: tuple[float, ...],
    before: float,
    after: float,
) -> SelectionSample:
    choice = max(range(len(probabilities)), key=probabilities.__getitem__)
    return SelectionSample(
        arm,
        seed,
        episode.group.family.value,
        episode.group.name,
        episode.recipe,
        cell,
        sum(p * q for p, q in zip(probabilities, query, strict=True)),
        choice,
        query[choice],
        query[choice] == 0,
        before,
        after,
        *probabilities,
        *query,
    )
