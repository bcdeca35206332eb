"""Prompts: one short line for a job, after one line for each case that is shown (ours).

    bitcoin/bitcoin CI "tidy" at dd05864: success
    bitcoin/bitcoin CI "tidy" at c59f221:

The four labels continue the last line, each followed by the end of the sequence.
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
    question = _line(job.repository, job.workflow_key, job.event, job.name, job.commit, params)
    lines = [_case(job.repository, case, params) for case in memory.shown(job, params.shown)]
    return Prompts(question, "\n".join([*lines, question]))


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


def _case(repository: str, case: Case, params: CaseParams) -> str:
    line = _line(repository, case.workflow, case.event, case.name, case.commit, params)
    return f"{line} {case.label}"


def _line(repository: str, workflow: str, event: str, name: str, commit: str, params: CaseParams) -> str:
    where = " ".join(_short(part, params) for part in (workflow, event) if part)
    return (
        f'{_short(repository, params)} CI {where + " " if where else ""}"{_short(name, params)}" '
        f"at {_short(commit, params)[:COMMIT_CHARACTERS]}:"
    )


def _short(text: str, params: CaseParams) -> str:
    """One line of bounded length."""
    return " ".join(text.split())[: params.field_characters]
