"""Training of the skills core on prompts whose results are shown by every interface, then frozen for good."""

import hashlib
import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.assembly import SKILL_TOKENS, ResidualCore, product_dtype
from tasks.checkpoint import load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.codec import Checkpoints
from tasks.corpus import Tokenizer
from tasks.progress import Progress, silent
from tasks.skills.batches import SkillBatch, training_batch
from tasks.skills.params import SkillCoreParams, TokenParams
from tasks.skills.render import Renderer, source_widths
from tasks.skills.tasks import TaskMaker

_BETAS = (0.9, 0.95)


@dataclass
class SkillTrainer:
    """A core on its way; every batch follows from the seed and the number of finished updates."""

    core: ResidualCore
    renderer: Renderer
    tasks: TaskMaker
    params: SkillCoreParams
    finished: int = 0

    def __post_init__(self) -> None:
        matrices = [p for p in self.core.parameters() if p.ndim > 1]
        others = [p for p in self.core.parameters() if p.ndim <= 1]
        decay = self.params.weight_decay
        groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=self.params.rate, betas=_BETAS)

    def step(self) -> float:
        """One update; returns its loss in nats."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.finished, self.params)
        batch = training_batch(self.renderer, self.tasks, self.params, self.finished)
        loss = batch_loss(self.core, batch, self.params.prompt_weight)
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.core.parameters(), self.params.clip)
        self.optimizer.step()
        self.finished += 1
        return float(loss.detach())

    def save(self, checkpoints: Checkpoints) -> None:
        """Keep everything that the next update depends on."""
        tensors = training_tensors(self.core, self.optimizer)
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, {"finished": self.finished})

    def resume(self, checkpoints: Checkpoints) -> None:
        """Continue from a kept state, if there is one."""
        found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
        if found is not None:
            tensors, record = found
            restore_training(self.core, self.optimizer, tensors)
            self.finished = int(record["finished"])


def new_skill_core(params: SkillCoreParams, tokens: TokenParams, tokenizer: Tokenizer) -> ResidualCore:
    """An untrained core that copies token observations."""
    digest = hashlib.sha256(f"skills core {params.seed}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    core = ResidualCore(params.architecture, tokenizer.vocab_size, source_widths(tokens), generator)
    core.start_from_codes([SKILL_TOKENS], generator)
    return core


def train_skill_core(
    core: ResidualCore,
    renderer: Renderer,
    tasks: TaskMaker,
    params: SkillCoreParams,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> None:
    """Train a core in place and freeze it.

    Equal inputs, device and thread count give equal bytes, also when the training was interrupted and
    continued from its checkpoint.
    """
    trainer = SkillTrainer(core, renderer, tasks, params)
    if checkpoints is not None:
        trainer.resume(checkpoints)
    saved = time.monotonic()
    while trainer.finished < params.steps:
        loss = trainer.step()
        progress(trainer.finished, params.steps, loss=loss)
        if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
            trainer.save(checkpoints)
            saved = time.monotonic()
    for parameter in core.parameters():
        parameter.requires_grad_(False)
    core.eval()


def batch_loss(core: ResidualCore, batch: SkillBatch, prompt_weight: float) -> Tensor:
    """Mean NLL in nats of answer tokens, the end among them, plus `prompt_weight` times that of prompts."""
    dtype = product_dtype(batch.tokens_BL.device)
    with torch.autocast(batch.tokens_BL.device.type, dtype, enabled=dtype != torch.float32):
        logits_BLV = core(batch.tokens_BL[:, :-1], batch.attachments)
    nll_BL = -logits_BLV.gather(-1, batch.tokens_BL[:, 1:, None]).squeeze(-1)
    answer, prompt = (nll_BL[part_BL[:, 1:]].mean() for part_BL in (batch.is_answer_BL, batch.is_prompt_BL))
    loss: Tensor = answer + prompt_weight * prompt
    return loss


def learning_rate(step: int, params: SkillCoreParams) -> float:
    """Rate of update `step` (from 0): linear warm-up, then a cosine from `rate` to `rate_floor`."""
    if step < params.warmup_steps:
        return params.rate * (step + 1) / params.warmup_steps
    span = max(1, params.steps - params.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * (step - params.warmup_steps) / span))
    return params.rate_floor + (params.rate - params.rate_floor) * cosine
