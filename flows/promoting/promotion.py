"""Promotion: a head moves to a snapshot if figures of its evaluation meet what is required of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.promoting.requirements import Requirement, Verdict, judge
from store import Row, Store
from store.errors import NotFoundError
from store.positions import LONGEST_WHY, PROMOTE
from tasks.evaluation.params import EvaluationParams

_SUMMARY = "application/json"

Evaluate = Callable[[str, EvaluationParams | None, str | None], str]
"""Evaluates a snapshot under these parameters (None: those of the caller) and against this core (None: one
that fits it), and returns the reference of the evaluation."""


class NotEvaluated(NotFoundError):
    """There is no evaluation of a snapshot, and none was to be made."""


@dataclass(frozen=True)
class Evaluation:
    """A published evaluation of a snapshot and its figures; what it cost is among them as `costs`."""

    row: Row
    figures: Mapping[str, Any]

    @property
    def settings(self) -> EvaluationParams:
        """The parameters that it was made with."""
        return EvaluationParams.model_validate(self.figures["settings"])

    @property
    def core(self) -> str:
        """The core that it was made against."""
        return str(self.row.provenance["core"])

    def to_dict(self) -> dict[str, Any]:
        """JSON values that say which evaluation it is."""
        return {"evaluation": str(self.row.ref), "core": self.core, "tasks": self.figures["tasks"]}


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
    why: str = "",
    dry_run: bool = False,
) -> Promotion:
    """Judge the snapshot of an id, and move head `to` there if all requirements hold, unless `dry_run`.

    The head moves from where it pointed when it was compared with, so that of two promotions at once one is
    told that it was judged against another snapshot. What is evaluated under `name` already is not evaluated
    again. The head's snapshot is judged under the parameters of the candidate's evaluation and, where it can
    read the same codec, against the same core.

    Raises `HeadMoved` if somebody else moved the head meanwhile.
    """
    before = store.head(to)
    found = evaluation_of(store, snapshot, name, core=core)
    if found is None:
        evaluate(snapshot, None, core)
        found = evaluation_of(store, snapshot, name, core=core)
        assert found is not None, "an evaluation that was just made is visible"
    of_head = None
    if before is not None and any(requirement.head for requirement in requirements):
        of_head = _of_head(store, before, found, evaluate)
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


def evaluation_of(
    store: Store,
    snapshot: str,
    name: str,
    *,
    core: str | None = None,
    settings: EvaluationParams | None = None,
) -> Evaluation | None:
    """The newest evaluation `evaluation/<name>` of a snapshot, with this core (by reference) and settings
    where they are given."""
    for row in reversed(store.catalog().versions(f"evaluation/{name}")):
        used = str(row.provenance.get("core"))
        if row.provenance.get("snapshot") != snapshot or row.media != _SUMMARY:
            continue
        if core is not None and used != core:
            continue
        found = Evaluation(row, {**json.loads(store.read(row)), "costs": row.facts})
        if settings is None or found.settings == settings:
            return found
    return None


def in_words(verdict: Verdict) -> str:
    """A requirement with its figure, for the log of a head."""
    return f"{verdict.requirement.text} ({verdict.value:.6g})"


def _of_head(store: Store, snapshot: str, candidate: Evaluation, evaluate: Evaluate) -> Evaluation:
    """The evaluation of the head's snapshot that can be compared with the candidate's."""
    settings, name = candidate.settings, candidate.settings.name
    row = store.catalog().get(candidate.core.rpartition("@")[2])
    same_codec = row is not None and store.snapshot(snapshot).one("codec").version in row.requires
    core = candidate.core if same_codec else None
    found = evaluation_of(store, snapshot, name, core=core, settings=settings)
    if found is None:
        evaluate(snapshot, settings, core)
        found = evaluation_of(store, snapshot, name, core=core, settings=settings)
        assert found is not None, "an evaluation that was just made is visible"
    return found
