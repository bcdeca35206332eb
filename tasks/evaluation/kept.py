"""Tasks under every condition, batch by batch; what an interrupted evaluation had, the next one goes on from.

Samples lie on local disk as the table that is published in the end, with the seconds that they took. A batch
is scored from its own tasks alone, so that with samples taken up again a run ends as an undisturbed one does,
bit for bit.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch

from tasks.checkpoint import Checkpoints, load_checkpoint, save_checkpoint
from tasks.errors import BadPayload
from tasks.evaluation.conditions import Condition
from tasks.evaluation.samples import Sample, encode_samples, load_samples
from tasks.evaluation.tasks import AttachmentTask
from tasks.progress import Progress, silent

_LOG = logging.getLogger(__name__)
_SAMPLES, _SECONDS = "samples", "seconds"

P = TypeVar("P")
Batch = Callable[[Condition, Sequence[AttachmentTask], Sequence[P], int], list[Sample]]
"""A condition, some tasks, what they are shown, and the number of the first -> their samples."""


def in_batches(
    batch: Batch[P],
    tasks: Sequence[AttachmentTask],
    plan: Mapping[Condition, Sequence[P]],
    size: int,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> tuple[list[Sample], dict[str, float]]:
    """Samples by condition, then task, from batches of `size` tasks; and the seconds of each condition.

    With `checkpoints`, whose fingerprint must be of everything that decides a sample, they are kept every so
    many seconds, and what an earlier run kept is not scored again. `progress` counts samples.
    """
    wanted = [(condition.value, task.name) for condition in plan for task in tasks]
    samples, seconds = _kept(checkpoints, wanted, len(tasks), size)
    seconds = {condition.value: seconds.get(condition.value, 0.0) for condition in plan}
    before, kept_at = len(samples), time.monotonic()
    for place, (condition, shown) in enumerate(plan.items()):
        for first in range(0, len(tasks), size):
            if place * len(tasks) + first < before:
                continue
            began = time.perf_counter()
            chosen = slice(first, first + size)
            samples += batch(condition, tasks[chosen], shown[chosen], first)
            seconds[condition.value] += time.perf_counter() - began
            if checkpoints is not None and time.monotonic() - kept_at >= checkpoints.seconds:
                _keep(checkpoints, samples, seconds)
                kept_at = time.monotonic()
            progress(len(samples), len(wanted))
    return samples, seconds


def _keep(checkpoints: Checkpoints, samples: Sequence[Sample], seconds: Mapping[str, float]) -> None:
    table = torch.frombuffer(bytearray(encode_samples(samples)), dtype=torch.uint8)
    save_checkpoint(checkpoints.folder, checkpoints.fingerprint, {_SAMPLES: table}, {_SECONDS: dict(seconds)})


def _kept(
    checkpoints: Checkpoints | None, wanted: Sequence[tuple[str, str]], count: int, size: int
) -> tuple[list[Sample], dict[str, float]]:
    """What was kept, if it is the beginning of what is wanted and ends where a batch of `size` does.

    `count` is the number of tasks under one condition.
    """
    found = None if checkpoints is None else load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    if found is None:
        return [], {}
    tensors, record = found
    try:
        table = tensors[_SAMPLES]
        if table.dtype != torch.uint8 or table.dim() != 1:
            raise ValueError("no bytes")
        samples = load_samples(table.numpy().tobytes())
        seconds = {str(name): float(value) for name, value in dict(record[_SECONDS]).items()}
    except (BadPayload, LookupError, TypeError, ValueError) as error:
        _LOG.warning("the kept samples cannot be used (%s); the evaluation starts over", error)
        return [], {}
    names = [(sample.condition, sample.task) for sample in samples]
    over = len(names) % count if count else 0
    if names != list(wanted[: len(names)]) or over % size:
        _LOG.warning("the kept samples are of other tasks; the evaluation starts over")
        return [], {}
    return samples, seconds
