"""Predictions: what policies say about every development episode, written down before any query is scored.

Nothing here knows a query: feedback comes from the support inputs alone. Each episode runs four ways,
with real or sham feedback and read after it (keep) or at the slow state (reset), and once with its feedback
in words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from tasks.errors import BadPayload
from tasks.larc import LarcParams, Learner, SlowState, begin, read
from tasks.programs import RECIPES, Episode, ProgramsParams, seed_of, support
from tasks.progress import Progress, silent
from tasks.study.inner import Feedback, adapt, policy
from tasks.study.params import StudyParams
from tasks.study.questions import Questioner
from tasks.tables import encode_records, load_records

_TOGETHER = 16
"""Episodes whose passes are made together; progress and memory depend on it, results do not."""
_SUM_TOLERANCE = 1e-4


class Cell(StrEnum):
    """How an episode learned, and which state was read; `words` has its feedback in the prompt instead."""

    REAL_KEEP = "real/keep"
    REAL_RESET = "real/reset"
    SHAM_KEEP = "sham/keep"
    SHAM_RESET = "sham/reset"
    WORDS = "words"


@dataclass(frozen=True)
class Prediction:
    """Policy probabilities of an episode's four candidates in one cell, and the support errors they knew.

    `before` and `after` are expected support errors at the slow state and at the state that was read.
    """

    episode: str
    cell: str
    p0: float
    p1: float
    p2: float
    p3: float
    e0: float
    e1: float
    e2: float
    e3: float
    before: float
    after: float

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of the candidates in their order."""
        return (self.p0, self.p1, self.p2, self.p3)


def predict(
    learner: Learner,
    questioner: Questioner,
    slow: SlowState,
    found: Sequence[Episode],
    programs: ProgramsParams,
    larc: LarcParams,
    study: StudyParams,
    *,
    seed: int,
    progress: Progress = silent,
) -> list[Prediction]:
    """All cells of all episodes under one slow state, cells of an episode in their order.

    `seed` is that of the training, so that both objectives of a seed have the same shams (paired). `progress`
    counts episodes.
    """
    made: list[Prediction] = []
    for start in range(0, len(found), _TOGETHER):
        part = found[start : start + _TOGETHER]
        errors_NJ = torch.tensor([support(episode, programs).errors for episode in part])
        energies = _energies(learner, questioner, slow, part, errors_NJ, larc, study, seed)
        policies = {cell: policy(energies_NJ).double() for cell, energies_NJ in energies.items()}
        for row, episode in enumerate(part):
            errors_J = torch.tensor(support(episode, programs).errors, dtype=torch.float64)
            before = float(policies[Cell.REAL_RESET][row] @ errors_J)
            made += [_prediction(episode.name, cell, policies[cell][row], errors_J, before) for cell in Cell]
        progress(min(start + _TOGETHER, len(found)), len(found))
    return made


def _energies(
    learner: Learner,
    questioner: Questioner,
    slow: SlowState,
    part: Sequence[Episode],
    errors_NJ: Tensor,
    larc: LarcParams,
    study: StudyParams,
    seed: int,
) -> dict[Cell, Tensor]:
    """Energies (N, J) of each cell."""
    questions = [questioner.ask(episode.group) for episode in part]
    kinds = [Feedback.REAL, Feedback.SHAM]
    begun = [
        begin(slow, seed=seed_of(study.judge.seed, kind, seed, episode.name))
        for kind in kinds
        for episode in part
    ]
    moved, seen = adapt(
        learner,
        begun,
        questions * len(kinds),
        errors_NJ.repeat(len(kinds), 1),
        [kind for kind in kinds for _ in part],
        steps=study.inner_steps,
        rate=larc.rate,
    )
    keep = read(learner, moved, questions * len(kinds), range(len(moved))).cpu().chunk(len(kinds))
    # A reset puts the bound slow state in the place of the fast one, whatever the feedback was, and the first
    # step has read the same questions at the same state.
    at_slow = seen[0].energies_NJ[: len(part)]
    told = read(learner, begun[:1], [questioner.tell(episode) for episode in part], [0] * len(part)).cpu()
    return {
        Cell.REAL_KEEP: keep[0],
        Cell.REAL_RESET: at_slow,
        Cell.SHAM_KEEP: keep[1],
        Cell.SHAM_RESET: at_slow,
        Cell.WORDS: told,
    }


def _prediction(episode: str, cell: Cell, policy_J: Tensor, errors_J: Tensor, before: float) -> Prediction:
    p0, p1, p2, p3 = policy_J.tolist()
    e0, e1, e2, e3 = errors_J.tolist()
    after = float(policy_J @ errors_J)
    return Prediction(episode, cell.value, p0, p1, p2, p3, e0, e1, e2, e3, before, after)


def encode_predictions(predictions: Sequence[Prediction]) -> bytes:
    """Predictions as Parquet; equal ones give equal bytes."""
    return encode_records(Prediction, predictions)


def load_predictions(
    payload: bytes, found: Sequence[Episode], programs: ProgramsParams
) -> dict[tuple[str, Cell], Prediction]:
    """Sealed predictions by episode and cell, if they are one of each for exactly these episodes.

    Raises `BadPayload` for anything else: missing or doubled rows, probabilities that are none, or support
    errors that are not those of the episodes.
    """
    rows = load_records(payload, Prediction, what="a table of predictions")
    wanted = {(episode.name, cell.value): episode for episode in found for cell in Cell}
    kept: dict[tuple[str, Cell], Prediction] = {}
    for row in rows:
        key = (row.episode, row.cell)
        if key not in wanted or (row.episode, Cell(row.cell)) in kept:
            raise BadPayload(f"predictions hold {row.episode[:80]!r} {row.cell[:20]!r} twice or in vain")
        sound = all(0 <= p <= 1 for p in row.probabilities) and math.isfinite(row.before + row.after)
        if not sound or not math.isclose(sum(row.probabilities), 1, abs_tol=_SUM_TOLERANCE):
            raise BadPayload(f"predictions of {row.episode} are no probabilities; predict again")
        if (row.e0, row.e1, row.e2, row.e3) != support(wanted[key], programs).errors:
            raise BadPayload(f"predictions of {row.episode} saw other feedback than the episode gives")
        kept[row.episode, Cell(row.cell)] = row
    if len(kept) != len(wanted):
        raise BadPayload(f"predictions hold {len(kept)} of {len(wanted)} rows; predict again")
    assert all(len(row.probabilities) == RECIPES for row in rows), "the columns are those of the recipes"
    return kept
