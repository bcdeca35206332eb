"""What can be evaluated from the command line: how, with which options, and which figures come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flows.cli.addressing_figures import ADDRESSING, QUESTIONS, evaluate_addressing, evaluate_questions
from flows.cli.anneal_figures import ANNEAL, CUMULATIVE
from flows.cli.attachment_figures import SUMMARY, evaluate_attachment
from flows.cli.composition_figures import COMPOSITION
from flows.cli.facts_figures import FACTS
from flows.cli.package import REPRODUCTION
from flows.cli.published import Figures
from flows.cli.rate_figures import RATE, evaluate_rate
from flows.cli.reading_figures import READING, evaluate_reading
from flows.cli.replacement_figures import REPLACEMENT, evaluate_replacement
from flows.cli.replay_figures import REPLAY
from flows.cli.selection_figures import SELECTION
from flows.cli.session import Session
from flows.cli.skill_figures import SKILLS, evaluate_skills

if TYPE_CHECKING:
    from flows.params import Params

SubjectName = Literal[
    "attachment", "reading", "replacement", "audit", "addressing", "questions", "skills", "rate"
]


@dataclass(frozen=True)
class Asked:
    """One evaluation as it was asked for."""

    params: "Params"
    session: Session
    out: Path
    snapshot: str | None = None
    core: str | None = None
    data: Path | None = None


@dataclass(frozen=True)
class Subject:
    """Figures, what evaluates and writes them, and whether a snapshot and a core can be named.

    `reads` says what is evaluated where one of them cannot.
    """

    figures: Figures
    evaluate: Callable[[Asked], None]
    snapshot: bool = True
    core: bool = True
    reads: str = ""


def _attachment(asked: Asked, *, audited: bool = False) -> None:
    evaluate_attachment(
        asked.params,
        asked.session,
        snapshot=asked.snapshot,
        core=asked.core,
        out=asked.out,
        audited=audited,
    )


def _audit(asked: Asked) -> None:
    _attachment(asked, audited=True)


def _reading(asked: Asked) -> None:
    evaluate_reading(asked.params, asked.session, snapshot=asked.snapshot, core=asked.core, out=asked.out)


def _replacement(asked: Asked) -> None:
    evaluate_replacement(asked.params, asked.session, snapshot=asked.snapshot, core=asked.core, out=asked.out)


def _addressing(asked: Asked) -> None:
    evaluate_addressing(asked.params, asked.session, snapshot=asked.snapshot, out=asked.out)


def _questions(asked: Asked) -> None:
    from flows.errors import UsageError

    if asked.data is None:
        raise UsageError("questions need a file of them; give it with --data")
    evaluate_questions(asked.params, asked.session, asked.data, snapshot=asked.snapshot, out=asked.out)


def _skills(asked: Asked) -> None:
    evaluate_skills(asked.params, asked.session, asked.out)


def _rate(asked: Asked) -> None:
    evaluate_rate(asked.params, asked.session, asked.out)


SUBJECTS: dict[SubjectName, Subject] = {
    "attachment": Subject(SUMMARY, _attachment),
    "reading": Subject(READING, _reading),
    "replacement": Subject(REPLACEMENT, _replacement),
    "audit": Subject(SUMMARY, _audit),
    "addressing": Subject(ADDRESSING, _addressing, core=False, reads="addressing asks an index, and no core"),
    "questions": Subject(QUESTIONS, _questions, core=False, reads="questions ask an index, and no core"),
    "skills": Subject(
        SKILLS, _skills, snapshot=False, core=False, reads="skills are named by their parameters"
    ),
    "rate": Subject(RATE, _rate, snapshot=False, core=False, reads="rate measures the pinned corpus"),
}
FIGURES: tuple[Figures, ...] = tuple(
    dict.fromkeys(
        [
            *(subject.figures for subject in SUBJECTS.values()),
            SELECTION,
            REPLAY,
            ANNEAL,
            CUMULATIVE,
            COMPOSITION,
            FACTS,
            REPRODUCTION,
        ]
    )
)
"""All kinds of figures, in the order in which a folder is searched for them."""


def refuse_stray_options(name: SubjectName, asked: Asked) -> None:
    """Raise UsageError for an option that does not go with a subject."""
    from flows.errors import UsageError

    subject = SUBJECTS[name]
    for option in ("snapshot", "core"):
        if getattr(asked, option) is not None and not getattr(subject, option):
            others = ", ".join(other for other, one in SUBJECTS.items() if getattr(one, option))
            raise UsageError(f"--{option} goes with {others}; {subject.reads}")
    if asked.core is not None and asked.snapshot is None:
        raise UsageError("--core goes with --snapshot; without it the pin files say which core is meant")
    if asked.data is not None and name != "questions":
        raise UsageError(f"--data goes with questions, not with {name}; leave it out")
