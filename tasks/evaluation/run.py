"""Running every condition over the tasks: the same core, the same prompts, only the evidence differs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.assembly import ResidualCore
from tasks.checkpoint import Checkpoints
from tasks.evaluation.conditions import Condition, Placement, Plan
from tasks.evaluation.evidence import EvidenceReader
from tasks.evaluation.kept import in_batches
from tasks.evaluation.samples import Sample
from tasks.evaluation.score import score
from tasks.evaluation.tasks import AttachmentTask
from tasks.progress import Progress, silent

SINGLE_TASKS = 16
"""Tasks behind a single-task latency."""

Decode = Callable[[NDArray[np.int64]], str]


@dataclass(frozen=True)
class Evaluator:
    """A frozen core with what it needs to be asked."""

    core: ResidualCore
    reader: EvidenceReader
    decode: Decode
    batch_tasks: int

    def run(
        self,
        tasks: Sequence[AttachmentTask],
        plan: Plan,
        progress: Progress = silent,
        checkpoints: Checkpoints | None = None,
    ) -> tuple[list[Sample], dict[str, float]]:
        """Samples by condition, then task; and the seconds that each condition took. See `in_batches`."""
        return in_batches(
            self.batch, tasks, plan, self.batch_tasks, progress=progress, checkpoints=checkpoints
        )

    def single_task_milliseconds(self, tasks: Sequence[AttachmentTask], plan: Plan) -> dict[str, float]:
        """Median milliseconds to read, attach and answer one task alone, by condition."""
        found: dict[str, float] = {}
        for condition, placements in plan.items():
            times = []
            for number in range(min(SINGLE_TASKS, len(tasks))):
                began = time.perf_counter()
                self.batch(condition, tasks[number : number + 1], placements[number : number + 1], number)
                times.append(time.perf_counter() - began)
            found[condition.value] = 1000 * float(np.median(times))
        return found

    def batch(
        self,
        condition: Condition,
        tasks: Sequence[AttachmentTask],
        placements: Sequence[Placement | None],
        first: int,
    ) -> list[Sample]:
        """Show one condition's evidence to some tasks and score them."""
        cue_BC = torch.from_numpy(np.stack([task.cue for task in tasks]))
        target_BT = torch.from_numpy(np.stack([task.target for task in tasks]))
        length = cue_BC.shape[1] + target_BT.shape[1]
        shown = self.reader.show(condition, placements, cue_BC, length, first)
        attached_B = shown.attached()
        scores = score(self.core, cue_BC, target_BT, shown.attachments)
        return [
            Sample(
                task=task.name,
                kind=task.kind,
                condition=condition.value,
                family=condition.family.value,
                element=task.element,
                evidence=placement.element if placement else "",
                evidence_start=placement.start if placement else 0,
                weight=float(shown.weight_B[row]),
                attached=int(attached_B[row]),
                nll=float(scores.nll_BT[row].mean(dtype=np.float64)),
                target_tokens=len(task.target),
                right_tokens=int(scores.right_BT[row].sum()),
                exact=bool((scores.written_BT[row] == task.target).all()),
                bytes_read=int(shown.bytes_B[row]),
                cue=self.decode(task.cue),
                target=self.decode(task.target),
                written=self.decode(scores.written_BT[row]),
            )
            for row, (task, placement) in enumerate(zip(tasks, placements, strict=True))
        ]
