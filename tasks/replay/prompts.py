"""Prompts: the repository, a line for each case that is shown, and the open line of the job itself (ours).

    bitcoin/bitcoin CI
    "lint" at c59f221: failure
    "tidy" at dd05864:

A line names workflow and event before the job where they are known. The four labels continue the last line,
each followed by the end of the sequence. The start time decides what is known, and is not shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.replay.cases import Case, CaseMemory
from tasks.replay.jobs import LABELS, Job
from tasks.replay.params import CaseParams
from tasks.replay.queue import Event

View = Literal["plain", "memory"]
"""Without and with cases; M0 and M1 of LARC 5."""
COMMIT_CHARACTERS = 7
CONTINUATIONS = tuple(f" {label}" for label in LABELS)
"""The texts of the candidates, in the order of the labels."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """A job's prompt in both views, as it was when the job started."""

    plain: str
    memory: str

    def of(self, view: View) -> str:
        """The prompt of one view."""
        return self.memory if view == "memory" else self.plain


def job_prompts(job: Job, memory: CaseMemory, params: CaseParams) -> Prompts:
    """The prompts of a job that starts while a session remembers these cases."""
    head = f"{_short(job.repository, params)} CI"
    question = _line(Case.of(job), params)
    shown = [f"{_line(case, params)} {case.label}" for case in memory.shown(job, params.shown)]
    return Prompts("\n".join([head, question]), "\n".join([head, *shown, question]))


def causal_prompts(
    happening: Sequence[Event], memories: Mapping[str, CaseMemory], params: CaseParams
) -> dict[str, Prompts]:
    """The prompts of all jobs by id, in the order of their starts, as the events make them.

    `memories` are by repository; they end as after the last event.

    Cases hold real labels in every path, so prompts depend on the order of events alone.
    """
    found: dict[str, Prompts] = {}
    for event in happening:
        for job in event.jobs:
            if event.kind == "predict":
                found[job.id] = job_prompts(job, memories[job.repository], params)
            else:
                memories[job.repository].add(Case.of(job))
    return found


def _line(case: Case, params: CaseParams) -> str:
    """Everything of a case but its label."""
    before = [_short(part, params) for part in (case.workflow, case.event) if part]
    commit = _short(case.commit, params)[:COMMIT_CHARACTERS]
    return " ".join([*before, f'"{_short(case.name, params)}" at {commit}:'])


def _short(text: str, params: CaseParams) -> str:
    """One line of bounded length."""
    return " ".join(text.split())[: params.field_characters]
