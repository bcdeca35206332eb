"""Promotion: a head moves to a snapshot if figures of its evaluation meet what is required of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flows.promoting.evaluations import Evaluation, Warn, evaluation_of, say_nothing
from flows.promoting.requirements import Requirement, Verdict, judge
from store import Store
from store.errors import IntegrityError, NotFoundError
from store.positions import LONGEST_WHY, PROMOTE
from tasks.evaluation.params import EvaluationParams

Evaluate = Callable[[str, EvaluationParams | None, str | None], str]
"""Evaluates a snapshot under these parameters (None: those of the caller) and against this core (None: one
that fits it), and returns the reference of the evaluation."""


class NotEvaluated(NotFoundError):
    """There is no evaluation of a snapshot, and none was to be made."""


@dataclass(frozen=True)
class Promotion:
    """What was judged by what, and whether the head moved."""

    head: str
    snapshot: str
    before: str | None
    evaluation: Evaluation
    of_head: Evaluation | None
    """Of the snapshot that the head points to, where a requirement compares with it."""
    verdicts: tuple[Verdict, ...]
    moved: bool

    @property
    def holds(self) -> bool:
        """Whether all requirements hold."""
        return all(verdict.holds for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "head": self.head,
            "snapshot": self.snapshot,
            "before": self.before,
            **self.evaluation.to_dict(),
            "compared_with": None if self.of_head is None else self.of_head.to_dict(),
            "requirements": [verdict.to_dict() for verdict in self.verdicts],
            "holds": self.holds,
            "moved": self.moved,
        }


def promote(
    store: Store,
    snapshot: str,
    *,
    to: str,
    requirements: Sequence[Requirement],
    evaluate: Evaluate,
    name: str,
    core: str | None = None,
    settings: EvaluationParams | None = None,
    why: str = "",
    dry_run: bool = False,
    warn: Warn = say_nothing,
) -> Promotion:
    """Judge the snapshot of an id, and move head `to` there if all requirements hold, unless `dry_run`.

    The head moves from where it pointed when it was compared with, so that of two promotions at once one is
    told that it was judged against another snapshot. What is evaluated under `name` already is not evaluated
    again, and with `settings` only an evaluation by these counts. The head's snapshot is judged under the
    parameters of the candidate's evaluation and, where it can read the same codec, against the same core.
    `warn` is told of records that cannot be read.

    Raises `HeadMoved` if somebody else moved the head meanwhile, `IntegrityError` where the record of an
    evaluation that was made cannot be read.
    """
    before = store.head(to)
    found = _evaluated(store, snapshot, name, core, settings, evaluate, warn)
    of_head = None
    if before is not None and any(requirement.head for requirement in requirements):
        of_head = _of_head(store, before, found, evaluate, warn)
    figures = None if of_head is None else of_head.figures
    verdicts = tuple(judge(requirement, found.figures, figures) for requirement in requirements)
    moves = not dry_run and before != snapshot and all(verdict.holds for verdict in verdicts)
    if moves:
        reason = why or "; ".join(map(in_words, verdicts))
        store.move_head(
            to,
            snapshot,
            expect=before,
            action=PROMOTE,
            why=reason if why or len(reason) <= LONGEST_WHY else f"{reason[: LONGEST_WHY - 3]}...",
            evaluation=str(found.row.ref),
        )
    return Promotion(to, snapshot, before, found, of_head, verdicts, moves)


def in_words(verdict: Verdict) -> str:
    """A requirement with its figure, for the log of a head."""
    return f"{verdict.requirement.text} ({verdict.value:.6g})"


def _of_head(
    store: Store, snapshot: str, candidate: Evaluation, evaluate: Evaluate, warn: Warn
) -> Evaluation:
    """The evaluation of the head's snapshot that can be compared with the candidate's."""
    settings = candidate.settings
    row = store.catalog().get(candidate.core.rpartition("@")[2])
    same_codec = row is not None and store.snapshot(snapshot).one("codec").version in row.requires
    core = candidate.core if same_codec else None
    return _evaluated(store, snapshot, settings.name, core, settings, evaluate, warn)


def _evaluated(
    store: Store,
    snapshot: str,
    name: str,
    core: str | None,
    settings: EvaluationParams | None,
    evaluate: Evaluate,
    warn: Warn,
) -> Evaluation:
    """The evaluation of a snapshot that counts, made where there is none."""
    found = evaluation_of(store, snapshot, name, core=core, settings=settings, warn=warn)
    if found is None:
        made = evaluate(snapshot, settings, core)
        found = evaluation_of(store, snapshot, name, core=core, settings=settings)
        if found is None:
            raise IntegrityError(
                f"{made} stands for the evaluation of snapshot {snapshot[:12]} and is none that can be read; "
                "evaluate it under another name, with --set evaluation.name=NAME"
            )
    return found
