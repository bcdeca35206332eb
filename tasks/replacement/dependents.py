"""Which results depend on an element's version, and which of them differ after it was replaced."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation import AttachmentTask, Condition, Placement, Plan, Sample

Result = tuple[str, str]
"""A condition and a task by their names."""


@dataclass(frozen=True)
class Change:
    """What is different in the new version of `element`: bool for each of its tokens, as read from its cells
    (a cell stands for a block of tokens) and as raw text."""

    element: str
    cells_N: NDArray[np.bool_]
    text_N: NDArray[np.bool_]

    def touches(self, condition: Condition, placement: Placement | None, length: int) -> bool:
        """Whether evidence laid along a sequence of `length` tokens holds something that is different.

        Position 0 of a sequence has no node before it, so what stands there is never attached.
        """
        if placement is None or placement.element != self.element or condition is Condition.NONE:
            return False
        different_N = self.text_N if condition is Condition.RAW_TEXT else self.cells_N
        begin, end = placement.start + 1, placement.start + length
        return bool(different_N[max(begin, 0) : max(end, 0)].any())


def concerned(tasks: Sequence[AttachmentTask], before: Plan, after: Plan, element: str) -> list[bool]:
    """For each task whether some condition shows it the element, or something else than before."""
    return [
        any(
            plan[condition][number] != before[condition][number]
            or (found is not None and found.element == element)
            for plan in (before, after)
            for condition in before
            for found in (plan[condition][number],)
        )
        for number in range(len(tasks))
    ]


def expected(
    tasks: Sequence[AttachmentTask],
    before: Plan,
    after: Plan,
    samples: Iterable[tuple[Sample, Sample]],
    change: Change,
) -> set[Result]:
    """The results that have to differ: other evidence is laid, with a weight, or the same with another one.

    Args:
        samples: every result before and after, in any order.
    """
    place = {task.name: number for number, task in enumerate(tasks)}
    found: set[Result] = set()
    for old, new in samples:
        condition, number = Condition(old.condition), place[old.task]
        length = len(tasks[number].cue) + len(tasks[number].target)
        placements = before[condition][number], after[condition][number]
        other = placements[0] != placements[1] or any(
            change.touches(condition, placement, length) for placement in placements
        )
        if (other and max(old.weight, new.weight) > 0) or old.weight != new.weight:
            found.add((old.condition, old.task))
    return found


def changed(samples: Iterable[tuple[Sample, Sample]]) -> set[Result]:
    """The results that differ in a loss, a weight, a choice or a written token, bit for bit."""
    return {(old.condition, old.task) for old, new in samples if _outcome(old) != _outcome(new)}


def _outcome(sample: Sample) -> tuple[object, ...]:
    return (sample.nll, sample.weight, sample.attached, sample.right_tokens, sample.exact, sample.written)
