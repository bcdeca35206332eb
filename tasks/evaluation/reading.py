"""Conditions without an alignment: what cross-reading makes of the same tasks (FEM-ASM, question-only).

The query is the visible text of the cue and nothing else: it has no place in any document, elements are found
by it, and no offset of what was found is used. Results are of their own families and never stand in one table
with coordinate-assisted ones.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import (
    TEXT,
    Attachment,
    CellTable,
    CrossReading,
    OpenElement,
    ReadingEvaluationParams,
    ResidualCore,
    TokenTable,
    open_memory,
)
from tasks.checkpoint import Checkpoints
from tasks.evaluation.conditions import Condition, Family
from tasks.evaluation.kept import in_batches
from tasks.evaluation.run import SINGLE_TASKS
from tasks.evaluation.samples import Sample
from tasks.evaluation.score import score
from tasks.evaluation.tasks import AttachmentTask
from tasks.progress import Progress, silent

ReadingPlan = dict[Condition, list[tuple[str, ...]]]
"""The elements that each task reads in under each condition."""

FORCED = (Condition.RIGHT, Condition.WRONG, Condition.SHUFFLED)
"""Conditions in which a node cannot choose to read nothing."""

_FAMILIES = {
    Condition.NONE: Family.STANDALONE,
    Condition.RETRIEVED: Family.EXTERNAL,
    Condition.RAW_TEXT: Family.EXTERNAL,
}


def reading_family(condition: Condition) -> Family:
    """The family of a condition whose evidence is read without an alignment."""
    return _FAMILIES.get(condition, Family.ORACLE_ELEMENT)


def plan_reading(
    tasks: Sequence[AttachmentTask],
    found: Sequence[Sequence[str]],
    names: Sequence[str],
    params: ReadingEvaluationParams,
    *,
    seed: int,
) -> ReadingPlan:
    """Which elements each task reads in.

    Args:
        found: the elements that were retrieved for each task, best first, one more than are read.
        names: elements from which wrong evidence is drawn, uniformly and never a task's own.
    """
    elements = params.elements
    rng = np.random.default_rng([seed, 5])
    retrieved: list[tuple[str, ...]] = [tuple(one[:elements]) for one in found]
    wrong: list[tuple[str, ...]] = []
    for task, answer in zip(tasks, found, strict=True):
        if params.wrong == "nearest":
            wrong.append(tuple([name for name in answer if name != task.element][:elements]))
            continue
        others = [name for name in sorted(names) if name != task.element]
        drawn = rng.choice(len(others), min(elements, len(others)), replace=False)
        wrong.append(tuple(others[number] for number in drawn))
    own: list[tuple[str, ...]] = [(task.element,) for task in tasks]
    return {
        Condition.NONE: [()] * len(tasks),
        Condition.RIGHT: own,
        Condition.RETRIEVED: retrieved,
        Condition.WRONG: wrong,
        Condition.WRONG_WEIGHED: wrong,
        Condition.SHUFFLED: own,
        Condition.RAW_TEXT: retrieved,
    }


@dataclass(frozen=True)
class Shelf:
    """Opens elements by name, as stored cells or as their documents' own tokens; each is decoded once."""

    reading: CrossReading
    core: ResidualCore
    cells: CellTable
    text: TokenTable
    order: Mapping[str, int]
    stored_bytes: Mapping[str, int]
    seed: int
    _opened: dict[str, OpenElement] = field(default_factory=dict)

    def open(self, condition: Condition, name: str, task: int) -> OpenElement:
        """An element as a condition shows it to the task of that number."""
        if condition is Condition.RAW_TEXT:
            first, length = self.text.first_N[self.order[name]], self.text.lengths_N[self.order[name]]
            ids_N = self.text.ids_M[first : first + length]
            return self.reading.text(TEXT, ids_N, self.core.identity.code(ids_N))
        if name not in self._opened:
            self._opened[name] = open_memory(self.reading, self.cells, self.order[name])
        opened = self._opened[name]
        if condition is Condition.SHUFFLED:
            order_N = np.random.default_rng([self.seed, 6, task]).permutation(len(opened))
            return opened.reordered(torch.from_numpy(order_N))
        return opened

    def bytes(self, condition: Condition, names: Sequence[str]) -> int:
        """Bytes that reading some elements takes: their payloads, or two for each token."""
        if condition is Condition.RAW_TEXT:
            return sum(2 * int(self.text.lengths_N[self.order[name]]) for name in names)
        return sum(self.stored_bytes[name] for name in names)


class _Asked:
    """Reads for one batch and remembers what the forced pass attached."""

    def __init__(self, reading: CrossReading, elements: list[list[OpenElement]], *, forced: bool) -> None:
        self.reading, self.elements, self.forced = reading, elements, forced
        self.shown: list[list[Attachment]] = []

    def __call__(self, tokens_BL: Tensor, start: int) -> list[Attachment]:
        self.shown.append(self.reading.attach(self.elements, tokens_BL, start, forced=self.forced))
        return self.shown[-1]

    def states_and_weights(self, nodes: int, targets: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Attached states of each row in the forced pass of so many nodes, and the mean total weight of its
        last `targets` nodes."""
        rows = len(self.elements)
        count_B, weight_B = np.zeros(rows, np.int64), np.zeros(rows)
        for part in (part for window in self.shown[:2] for part in window):
            np.add.at(count_B, part.row_E.numpy(), 1)
            late_E = part.node_E.numpy() >= nodes - targets
            np.add.at(weight_B, part.row_E.numpy()[late_E], part.weight_E.numpy()[late_E])
        return count_B, weight_B / targets


@dataclass(frozen=True)
class ReadingEvaluator:
    """A frozen core with a frozen cross-reading, and the elements that they read in."""

    core: ResidualCore
    reading: CrossReading
    shelf: Shelf
    decode: Callable[[NDArray[np.int64]], str]
    batch_tasks: int

    def run(
        self,
        tasks: Sequence[AttachmentTask],
        plan: ReadingPlan,
        progress: Progress = silent,
        checkpoints: Checkpoints | None = None,
    ) -> tuple[list[Sample], dict[str, float]]:
        """Samples by condition, then task; and the seconds that each condition took. See `in_batches`."""
        return in_batches(
            self.batch, tasks, plan, self.batch_tasks, progress=progress, checkpoints=checkpoints
        )

    def single_task_milliseconds(
        self, tasks: Sequence[AttachmentTask], plan: ReadingPlan
    ) -> dict[str, float]:
        """Median milliseconds to read and answer one task alone, by condition, its elements decoded."""
        found: dict[str, float] = {}
        for condition, named in plan.items():
            times = []
            for number in range(min(SINGLE_TASKS, len(tasks))):
                began = time.perf_counter()
                self.batch(condition, tasks[number : number + 1], named[number : number + 1], number)
                times.append(time.perf_counter() - began)
            found[condition.value] = 1000 * float(np.median(times))
        return found

    @torch.no_grad()
    def batch(
        self,
        condition: Condition,
        tasks: Sequence[AttachmentTask],
        named: Sequence[tuple[str, ...]],
        first: int,
    ) -> list[Sample]:
        """Let some tasks, the first of which has that number, read in one condition's elements."""
        cue_BC = torch.from_numpy(np.stack([task.cue for task in tasks]))
        target_BT = torch.from_numpy(np.stack([task.target for task in tasks]))
        elements = [
            [self.shelf.open(condition, name, number) for name in names]
            for number, names in enumerate(named, start=first)
        ]
        asked = _Asked(self.reading, elements, forced=condition in FORCED)
        scores = score(self.core, cue_BC, target_BT, asked)
        targets = target_BT.shape[1]
        attached_B, weight_B = asked.states_and_weights(cue_BC.shape[1] + targets - 1, targets)
        return [
            Sample(
                task=task.name,
                kind=task.kind,
                condition=condition.value,
                family=reading_family(condition).value,
                element=task.element,
                evidence=" ".join(names),
                evidence_start=0,
                weight=float(weight_B[row]),
                attached=int(attached_B[row]),
                nll=float(scores.nll_BT[row].mean(dtype=np.float64)),
                target_tokens=targets,
                right_tokens=int(scores.right_BT[row].sum()),
                exact=bool((scores.written_BT[row] == task.target).all()),
                bytes_read=self.shelf.bytes(condition, names),
                cue=self.decode(task.cue),
                target=self.decode(task.target),
                written=self.decode(scores.written_BT[row]),
            )
            for row, (task, names) in enumerate(zip(tasks, named, strict=True))
        ]
