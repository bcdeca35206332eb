"""Interventions: another value is returned in place of the executed one, and sometimes the same.

A substitute is the value itself, a value nearby, its negation, what another skill gives for the same
operands, or another task's value. Whether it really differs is told apart afterwards: substitutes that
happen to be equal, by choice or by chance, say nothing about what the output follows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tasks.skills.compiler import Operation
from tasks.skills.machine import execute
from tasks.skills.program import LARGEST, SMALLEST, Program
from tasks.skills.tasks import SkillTask

KINDS = ("unchanged", "near", "negated", "other_skill", "other_task")
_FARTHEST = 10


def substitutes(
    tasks: Sequence[SkillTask], programs: Mapping[Operation, Program], *, seed: int
) -> list[tuple[str, int]]:
    """For each task a kind of `KINDS` and the value that is returned instead of its answer."""
    rng = np.random.default_rng([seed, 1])
    found = []
    for task in tasks:
        kind = KINDS[int(rng.integers(len(KINDS)))]
        value = _substitute(kind, task, tasks, programs, rng)
        # Outside the bounds, or trapped: no machine could have returned it.
        fits = value is not None and SMALLEST <= value <= LARGEST
        found.append((kind, value) if fits and value is not None else ("unchanged", task.answer))
    return found


def _substitute(
    kind: str,
    task: SkillTask,
    tasks: Sequence[SkillTask],
    programs: Mapping[Operation, Program],
    rng: np.random.Generator,
) -> int | None:
    if kind == "near":
        return task.answer + int(rng.integers(-_FARTHEST, _FARTHEST + 1))
    if kind == "negated":
        return -task.answer
    if kind == "other_skill":
        others = [operation for operation in Operation if operation != task.operation]
        return execute(programs[others[int(rng.integers(len(others)))]], (task.first, task.second)).value
    if kind == "other_task":
        return tasks[int(rng.integers(len(tasks)))].answer
    return task.answer
