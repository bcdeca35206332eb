"""Training of the core: language and attachment batches in turn, then frozen for good (FEM-ASM, recipe).

bf16 autocast over float32 parameters where bf16 is native, AdamW (0.9, 0.95), weight decay on matrices,
gradient clipping, warm-up and a cosine. Rate, steps and the evidence mix are our fork of the recipe for
small cores.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.assembly.attachment import MEMORY, TEXT
from tasks.assembly.batches import AttachmentRows, Batch, LanguageStream
from tasks.assembly.head import start_from_frequencies
from tasks.assembly.model import ResidualCore
from tasks.assembly.params import AssemblyParams
from tasks.assembly.training import CoreTraining
from tasks.checkpoint import Checkpoints
from tasks.codec import CODE_BITS, Codec
from tasks.processor import product_dtype
from tasks.progress import Progress, silent

CURVE_EVIDENCE = ("none", "right", "wrong", "text")
_VALIDATION_TILE = 32


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


class CoreTrainer(CoreTraining[ResidualCore]):
    """The core of memories on its way, with its learning curve."""

    def __init__(self, core: ResidualCore, params: AssemblyParams, data: TrainingData) -> None:
        super().__init__(core, params)
        self.params = params
        self.data = data
        self.notes = {"curve": []}
        self._points = {0, *curve_steps(params)}

    @property
    def curve(self) -> list[CurvePoint]:
        """The learning curve so far."""
        return [CurvePoint(**point) for point in self.notes["curve"]]

    def batch(self, step: int) -> Batch:
        """The batch of update `step`: every `attachment_every`-th is an attachment batch."""
        every = self.params.attachment_every
        return self.data.rows.batch(step) if step % every == every - 1 else self.data.language.batch(step)

    def loss(self, step: int) -> Tensor:
        """Mean loss of an update's batch, nats per token."""
        return batch_loss(self.core, self.batch(step))

    def measure(self) -> None:
        """Add a point to the learning curve where one is due, if there are held-out rows."""
        held_out, p = self.data.held_out, self.params
        if held_out is None or self.finished not in self._points:
            return
        nll = {
            shown: target_nll(self.core, held_out.fixed(shown, p.validation_rows, p.seed), p.target_tokens)
            for shown in CURVE_EVIDENCE
        }
        self.notes["curve"].append(asdict(CurvePoint(self.finished, nll)))


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
    trainer.run(progress, checkpoints, trainer.measure)
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
