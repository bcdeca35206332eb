"""Training of the core: language and attachment batches in turn, then frozen for good (FEM-ASM, recipe).

bf16 autocast over float32 parameters where bf16 is native, AdamW (0.9, 0.95), weight decay on matrices,
gradient clipping, warm-up and a cosine. Rate, steps and the evidence mix are our fork of the recipe for
small cores.
"""

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.assembly.attachment import MEMORY, TEXT
from tasks.assembly.batches import AttachmentRows, Batch, LanguageStream
from tasks.assembly.head import start_from_frequencies
from tasks.assembly.model import ResidualCore
from tasks.assembly.params import AssemblyParams
from tasks.checkpoint import load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.codec import CODE_BITS, Checkpoints, Codec
from tasks.progress import Progress, silent

CURVE_EVIDENCE = ("none", "right", "wrong", "text")
_BETAS = (0.9, 0.95)
_VALIDATION_TILE = 32
_NATIVE_BF16 = ("amx_bf16", "avx512_bf16", "bf16")
"""Instructions that multiply bfloat16: of x86 and of ARM."""


@dataclass(frozen=True)
class CurvePoint:
    """Held-out figures after `step` updates: mean NLL of the target tokens by evidence shown, in nats."""

    step: int
    nll: dict[str, float]


@dataclass(frozen=True)
class TrainingData:
    """Where batches come from; `held_out` rows are of the validation split and only make the learning
    curve.
    """

    language: LanguageStream
    rows: AttachmentRows
    held_out: AttachmentRows | None = None


@dataclass
class CoreTrainer:
    """A core on its way; every batch follows from the seed and the number of finished updates."""

    core: ResidualCore
    params: AssemblyParams
    data: TrainingData
    finished: int = 0
    curve: list[CurvePoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        matrices = [p for p in self.core.parameters() if p.ndim > 1]
        others = [p for p in self.core.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.params.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=self.params.rate, betas=_BETAS)

    def batch(self, step: int) -> Batch:
        """The batch of update `step`: every `attachment_every`-th is an attachment batch."""
        every = self.params.attachment_every
        return self.data.rows.batch(step) if step % every == every - 1 else self.data.language.batch(step)

    def step(self) -> float:
        """One update; returns its loss in nats per token."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.finished, self.params)
        loss = batch_loss(self.core, self.batch(self.finished))
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.core.parameters(), self.params.clip)
        self.optimizer.step()
        self.finished += 1
        return float(loss.detach())

    def measure(self) -> None:
        """Add a point to the learning curve, if there are held-out rows."""
        held_out, p = self.data.held_out, self.params
        if held_out is None:
            return
        nll = {
            shown: target_nll(self.core, held_out.fixed(shown, p.validation_rows, p.seed), p.target_tokens)
            for shown in CURVE_EVIDENCE
        }
        self.curve.append(CurvePoint(self.finished, nll))

    def save(self, checkpoints: Checkpoints) -> None:
        """Keep everything that the next update depends on."""
        record: dict[str, Any] = {"finished": self.finished, "curve": [asdict(point) for point in self.curve]}
        tensors = training_tensors(self.core, self.optimizer)
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, record)

    def resume(self, checkpoints: Checkpoints) -> None:
        """Continue from a kept state, if there is one."""
        found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
        if found is not None:
            tensors, record = found
            restore_training(self.core, self.optimizer, tensors)
            self.finished = int(record["finished"])
            self.curve = [CurvePoint(**point) for point in record["curve"]]


def new_core(params: AssemblyParams, codec: Codec, language: LanguageStream) -> ResidualCore:
    """An untrained core that copies through the codec's own head and speaks in unigram frequencies."""
    generator = seeded(params.seed, "weights")
    widths = {MEMORY: codec.architecture.slot_width, TEXT: CODE_BITS}
    core = ResidualCore(params.architecture, codec.vocab_size, widths, generator)
    core.start_from_codec(codec.head.weight.detach(), generator)
    start_from_frequencies(core.head, language.counts(codec.vocab_size))
    return core


def train(
    core: ResidualCore,
    params: AssemblyParams,
    data: TrainingData,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> list[CurvePoint]:
    """Train a core in place and freeze it; returns its learning curve.

    Equal parameters, data, device and thread count give equal bytes, also when the training was interrupted
    and continued from its checkpoint.
    """
    trainer = CoreTrainer(core, params, data)
    if checkpoints is not None:
        trainer.resume(checkpoints)
    if trainer.finished == 0:
        trainer.measure()
    points = set(curve_steps(params))
    saved = time.monotonic()
    while trainer.finished < params.steps:
        loss = trainer.step()
        progress(trainer.finished, params.steps, loss=loss)
        if trainer.finished in points:
            trainer.measure()
        if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
            trainer.save(checkpoints)
            saved = time.monotonic()
    for parameter in core.parameters():
        parameter.requires_grad_(False)
    core.eval()
    return trainer.curve


def curve_steps(params: AssemblyParams) -> Iterator[int]:
    """The updates after which the learning curve gets a point; the last is among them."""
    return (round(params.steps * n / params.curve_points) for n in range(1, params.curve_points + 1))


def seeded(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for each purpose."""
    digest = hashlib.sha256(f"core {seed} {purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def batch_loss(core: ResidualCore, batch: Batch) -> Tensor:
    """Mean NLL of the next token over all positions of a batch, in nats, multiplied in `product_dtype`."""
    tokens_BL = batch.tokens_BL
    dtype = product_dtype(tokens_BL.device)
    with torch.autocast(tokens_BL.device.type, dtype, enabled=dtype != torch.float32):
        logits_BLV = core(tokens_BL[:, :-1], batch.attachments)
    return F.nll_loss(logits_BLV.flatten(0, 1), tokens_BL[:, 1:].flatten())


def product_dtype(device: torch.device) -> torch.dtype:
    """The dtype of matrix products in training: bfloat16, or float32 on a processor that lacks bf16.

    Such a processor emulates them, several times slower than float32 and no closer to it.
    """
    if device.type != "cpu":
        return torch.bfloat16
    has = torch.cpu.get_capabilities()
    native = any(has.get(name) for name in _NATIVE_BF16)
    return torch.bfloat16 if native else torch.float32


@torch.no_grad()
def target_nll(core: ResidualCore, batch: Batch, target_tokens: int) -> float:
    """Mean NLL in nats of the last `target_tokens` of every row, in float32."""
    total = 0.0
    rows = len(batch.tokens_BL)
    for start in range(0, rows, _VALIDATION_TILE):
        tile = batch.rows(start, min(rows, start + _VALIDATION_TILE))
        logits_BTV = core(tile.tokens_BL[:, :-1], tile.attachments)[:, -target_tokens:]
        target_BT1 = tile.tokens_BL[:, -target_tokens:, None]
        total -= float(logits_BTV.gather(-1, target_BT1).sum())
    return total / (rows * target_tokens)


def learning_rate(step: int, params: AssemblyParams) -> float:
    """Rate of update `step` (from 0): linear warm-up, then a cosine from `rate` to `rate_floor`."""
    if step < params.warmup_steps:
        return params.rate * (step + 1) / params.warmup_steps
    span = max(1, params.steps - params.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * (step - params.warmup_steps) / span))
    return params.rate_floor + (params.rate - params.rate_floor) * cosine
