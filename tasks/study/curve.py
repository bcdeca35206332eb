"""The learning curve of a training and the figures of its updates: looks that change nothing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch

from tasks.larc import LarcParams, Learner, SlowState, begin, read
from tasks.programs import Group, ProgramsParams, episodes, query_errors, seed_of, support
from tasks.study.inner import Feedback, adapt, expected_error
from tasks.study.params import StudyParams
from tasks.study.questions import Questioner


@dataclass(frozen=True)
class CurvePoint:
    """Expected query errors after so many outer updates: read at the slow state, and after real feedback."""

    update: int
    reset: float
    keep: float


@dataclass(frozen=True)
class LogRow:
    """What updates up to and with number `update` looked like on average.

    Losses are expected errors: of the query that the outer gradient is made of, and of the support before and
    after its steps (with static training before the last one: nothing reads the state after it).
    `update_norm` is that of the fast factors' way from the slow ones, `gradient_norm` that of the outer
    gradient before it is clipped, `slow_norm` that of the slow factors before the update; all Euclidean.
    """

    update: int
    query_loss: float
    support_before: float
    support_after: float
    update_norm: float
    gradient_norm: float
    slow_norm: float


def averaged(update: int, rows: Sequence[LogRow]) -> LogRow:
    """One row for several updates."""
    listed = [asdict(row) for row in rows]
    means = {name: sum(row[name] for row in listed) / len(listed) for name in listed[0] if name != "update"}
    return LogRow(update=update, **means)


def curve_point(
    learner: Learner,
    questioner: Questioner,
    slow: SlowState,
    groups: Sequence[Group],
    programs: ProgramsParams,
    larc: LarcParams,
    study: StudyParams,
) -> CurvePoint:
    """Where a slow state stands on all episodes of some groups."""
    found = episodes(groups)
    questions = [questioner.ask(episode.group) for episode in found]
    query_NJ = torch.tensor([query_errors(episode, programs) for episode in found])
    begun = [begin(slow, seed=seed_of(study.judge.seed, "curve", episode.name)) for episode in found]
    moved, seen = adapt(
        learner,
        begun,
        questions,
        torch.tensor([support(episode, programs).errors for episode in found]),
        [Feedback.REAL] * len(found),
        steps=study.inner_steps,
        rate=larc.rate,
    )
    after_NJ = read(learner, moved, questions, range(len(found))).cpu()
    reset, keep = (
        float(expected_error(energies_NJ, query_NJ).mean()) for energies_NJ in (seen[0].energies_NJ, after_NJ)
    )
    return CurvePoint(slow.version, reset, keep)
