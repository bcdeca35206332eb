"""What trainings of cores, and of what reads for them, have in common: AdamW, warm-up and cosine, clipping,
checkpoints, the freeze."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from tasks.checkpoint import Checkpoints, load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.progress import Progress, silent

Module = TypeVar("Module", bound=nn.Module)

_BETAS = (0.9, 0.95)


class Schedule(Protocol):
    """How a core is trained: `rate` rises over `warmup_steps` of `steps` updates, then falls to `rate_floor`.

    Matrices decay by `weight_decay`; gradients are clipped to the norm `clip`.
    """

    @property
    def steps(self) -> int: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def rate_floor(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def clip(self) -> float: ...


class CoreTraining(ABC, Generic[Module]):
    """A core, or a module beside one, on its way.

    Every batch follows from the seed and the number of finished updates.

    Equal inputs, device and thread count give equal bytes, also when the training was interrupted and
    continued from its checkpoint.
    """

    def __init__(self, core: Module, schedule: Schedule) -> None:
        self.core = core
        self.schedule = schedule
        self.finished = 0
        self.notes: dict[str, Any] = {}
        """What was observed on the way, as JSON; a checkpoint keeps it."""
        matrices = [p for p in core.parameters() if p.ndim > 1]
        others = [p for p in core.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": schedule.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=schedule.rate, betas=_BETAS)

    @abstractmethod
    def loss(self, step: int) -> Tensor:
        """The loss of update `step` (from 0) in nats, a scalar with a gradient."""

    def run(
        self,
        progress: Progress = silent,
        checkpoints: Checkpoints | None = None,
        observe: Callable[[], None] = lambda: None,
    ) -> None:
        """Train to the end, from the last checkpoint where there is one, and freeze the core.

        `observe` is called before the first update and after each.
        """
        if checkpoints is not None:
            self.resume(checkpoints)
        if self.finished == 0:
            observe()
        saved = time.monotonic()
        while self.finished < self.schedule.steps:
            loss = self.step()
            progress(self.finished, self.schedule.steps, loss=loss)
            observe()
            if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
                self.save(checkpoints)
                saved = time.monotonic()
        for parameter in self.core.parameters():
            parameter.requires_grad_(False)
        self.core.eval()

    def step(self) -> float:
        """One update; returns its loss in nats."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.finished, self.schedule)
        loss = self.loss(self.finished)
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.core.parameters(), self.schedule.clip)
        self.optimizer.step()
        self.finished += 1
        return float(loss.detach())

    def save(self, checkpoints: Checkpoints) -> None:
        """Keep everything that the next update depends on."""
        record = {"finished": self.finished, **self.notes}
        tensors = training_tensors(self.core, self.optimizer)
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, record)

    def resume(self, checkpoints: Checkpoints) -> None:
        """Continue from a kept state, if there is one."""
        found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
        if found is not None:
            tensors, record = found
            restore_training(self.core, self.optimizer, tensors)
            self.finished = int(record["finished"])
            self.notes = {name: value for name, value in record.items() if name != "finished"}


def learning_rate(step: int, schedule: Schedule) -> float:
    """Rate of update `step` (from 0): linear warm-up, then a cosine from `rate` to `rate_floor`."""
    if step < schedule.warmup_steps:
        return schedule.rate * (step + 1) / schedule.warmup_steps
    span = max(1, schedule.steps - schedule.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * (step - schedule.warmup_steps) / span))
    return schedule.rate_floor + (schedule.rate - schedule.rate_floor) * cosine
