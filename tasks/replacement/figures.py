"""Figures of a replacement: what was shown the element, what changed, and whether answers follow its text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tasks.evaluation import AttachmentTask, Condition, EvaluationSetting, Plan, Sample
from tasks.replacement.dependents import Result
from tasks.replacement.edit import editable
from tasks.replacement.swap import Swap


def reading(before: Plan, after: Plan, tasks: Sequence[AttachmentTask], element: str) -> set[Result]:
    """The results that are shown the element before or after, whatever its weight."""
    return {
        (condition.value, task.name)
        for condition in before
        for number, task in enumerate(tasks)
        for placement in (before[condition][number], after[condition][number])
        if placement is not None and placement.element == element
    }


def by_condition(
    results: Sequence[tuple[Sample, Sample]], differing: set[Result], due: set[Result]
) -> dict[str, dict[str, Any]]:
    """For each condition how many results had to change and did, and the mean losses."""
    table = {}
    for condition in Condition:
        pairs = [(old, new) for old, new in results if old.condition == condition]
        means = {
            side: float(np.mean([one.nll for one in group]))
            for side, group in (("before", [o for o, _ in pairs]), ("after", [n for _, n in pairs]))
        }
        table[condition.value] = {
            "expected": sum(name == condition for name, _ in due),
            "changed": sum(name == condition for name, _ in differing),
            "nll": means,
        }
    return table


def edited(swap: Swap, setting: EvaluationSetting, tasks: Sequence[AttachmentTask]) -> dict[str, str] | None:
    """What the new version says where a task's answer was edited, by the task's name; None where the new
    version's text is not known."""
    if swap.ids is None:
        return None
    own = [task for task in tasks if task.element == swap.old.name]
    return {
        task.name: setting.tokenizer.decode(swap.ids[task.offset : task.offset + len(task.target)])
        for task in editable(own)
    }


def follows(
    swap: Swap,
    setting: EvaluationSetting,
    tasks: Sequence[AttachmentTask],
    results: Sequence[tuple[Sample, Sample]],
) -> dict[str, dict[str, int]] | None:
    """What the core wrote where an answer was edited: the old text before, the new text after; None where
    the new version's text is not known."""
    answer = edited(swap, setting, tasks)
    if answer is None:
        return None
    counts = {}
    for condition in (Condition.RIGHT, Condition.RETRIEVED, Condition.RAW_TEXT):
        pairs = [(o, n) for o, n in results if o.condition == condition and o.task in answer]
        counts[condition.value] = asdict(
            Followed(
                len(pairs),
                sum(old.exact for old, _ in pairs),
                sum(new.written == answer[new.task] for _, new in pairs),
                sum(new.exact for _, new in pairs),
            )
        )
    return counts


@dataclass(frozen=True)
class Followed:
    """Tasks with an edited answer: how many wrote the old text before, the new text after, and still the old
    text after."""

    tasks: int
    old_before: int
    new_after: int
    old_after: int
