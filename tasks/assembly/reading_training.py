"""Training of the cross-reading before a frozen core: from the next tokens alone, without any alignment.

A row is a window of a train-split document beside some elements, its own document's among them or not; the
loss is the core's on the tokens of the window before which a whole context stands, and only the cross-reading
learns. Where a row's own document
is not there, reading nothing is what helps.
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.assembly.attachment import MEMORY
from tasks.assembly.model import ResidualCore
from tasks.assembly.params import ReadingParams
from tasks.assembly.reading import CrossReading, OpenElement
from tasks.assembly.readout import CellTable, TokenTable
from tasks.assembly.training import CoreTraining
from tasks.checkpoint import Checkpoints
from tasks.errors import TooLittleText
from tasks.progress import Progress, silent


@dataclass(frozen=True)
class ReadingBatch:
    """tokens_BL int64, of which the last is only predicted, and the elements that each row reads in."""

    tokens_BL: Tensor
    elements: list[list[OpenElement]]


@dataclass(frozen=True)
class ReadingFigures:
    """Held-out NLL of the target tokens in nats after `step` updates: nothing to read, the own document
    among the elements, only other documents."""

    step: int
    none: float
    right: float
    wrong: float


class ReadingRows:
    """Windows of documents and the elements beside them; all elements are decoded once and held."""

    def __init__(
        self, cells: CellTable, text: TokenTable, reading: CrossReading, params: ReadingParams
    ) -> None:
        """`cells` and `text` describe the same documents in the same order."""
        self.text, self.params = text, params
        self.window = params.cue_tokens + params.target_tokens
        self.lengths = torch.minimum(cells.lengths_N, text.lengths_N).numpy()
        self.usable = np.flatnonzero(self.lengths >= self.window)
        if len(self.usable) < 2:
            raise TooLittleText(
                f"{len(self.usable)} elements of a split reach {self.window} tokens, training what "
                "reads in them needs 2; build more memories or shorten cue_tokens"
            )
        self.opened = [open_memory(reading, cells, document) for document in range(len(self.lengths))]

    def batch(self, step: int) -> ReadingBatch:
        """The batch of a training step."""
        rng = np.random.default_rng([self.params.seed, 0, step])
        return self._build(rng, rng.random(self.params.rows) < self.params.right_share)

    def fixed(self, *, right: bool) -> ReadingBatch:
        """The rows of the validation, the same windows whether their own document is there or not."""
        rng = np.random.default_rng([self.params.seed, 1])
        return self._build(rng, np.full(self.params.validation_rows, right))

    def _build(self, rng: np.random.Generator, right_B: np.ndarray) -> ReadingBatch:
        own_B = rng.choice(self.usable, len(right_B))
        start_B = rng.integers(0, self.lengths[own_B] - self.window + 1)
        tokens_BL, _ = self.text.tokens(torch.from_numpy(own_B), torch.from_numpy(start_B), self.window)
        return ReadingBatch(
            tokens_BL,
            [self._elements(rng, int(own), bool(right)) for own, right in zip(own_B, right_B, strict=True)],
        )

    def _elements(self, rng: np.random.Generator, own: int, right: bool) -> list[OpenElement]:
        drawn = rng.choice(len(self.opened), min(self.params.elements + 1, len(self.opened)), replace=False)
        others = [int(other) for other in drawn if other != own][: self.params.elements]
        if right:
            others[-1] = own
        return [self.opened[document] for document in others]


class ReadingTrainer(CoreTraining[CrossReading]):
    """The cross-reading on its way; `frozen` is the core that it reads for."""

    def __init__(
        self,
        reading: CrossReading,
        frozen: ResidualCore,
        params: ReadingParams,
        rows: ReadingRows,
        held_out: ReadingRows | None = None,
    ) -> None:
        super().__init__(reading, params)
        self.frozen, self.params, self.rows, self.held_out = frozen, params, rows, held_out
        self.notes = {"figures": []}

    def loss(self, step: int) -> Tensor:
        """Mean NLL in nats of the core's next tokens at the nodes that ask with a whole context."""
        batch = self.rows.batch(step)
        asked_BL = batch.tokens_BL[:, :-1]
        first = min(self.params.architecture.context_tokens, self.params.cue_tokens) - 1
        logits_BLV = self.frozen(asked_BL, self.core.attach(batch.elements, asked_BL))[:, first:]
        return F.nll_loss(logits_BLV.flatten(0, 1), batch.tokens_BL[:, first + 1 :].flatten())

    @torch.no_grad()
    def measure(self) -> None:
        """Note the held-out figures before the first update and after the last."""
        if self.held_out is None or self.finished not in (0, self.params.steps):
            return
        right, wrong = (self.held_out.fixed(right=there) for there in (True, False))
        none = ReadingBatch(right.tokens_BL, [[] for _ in right.elements])
        nll = (self._target_nll(batch) for batch in (none, right, wrong))
        self.notes["figures"].append(asdict(ReadingFigures(self.finished, *nll)))

    def _target_nll(self, batch: ReadingBatch) -> float:
        asked_BL, count = batch.tokens_BL[:, :-1], self.params.target_tokens
        logits_BTV = self.frozen(asked_BL, self.core.attach(batch.elements, asked_BL))[:, -count:]
        return -float(logits_BTV.gather(-1, batch.tokens_BL[:, -count:, None]).mean())


def train_cross_reading(
    reading: CrossReading,
    core: ResidualCore,
    params: ReadingParams,
    rows: ReadingRows,
    held_out: ReadingRows | None = None,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> list[ReadingFigures]:
    """Train a cross-reading in place before a frozen core, and freeze it; returns the held-out figures.

    Equal inputs, device and thread count give equal bytes, also after an interruption.
    """
    trainer = ReadingTrainer(reading, core, params, rows, held_out)
    trainer.run(progress, checkpoints, trainer.measure)
    return [ReadingFigures(**point) for point in trainer.notes["figures"]]


def open_memory(reading: CrossReading, cells: CellTable, document: int) -> OpenElement:
    """One document's stored cells, decoded as slot states of all its positions."""
    which, length = torch.tensor([document]), int(cells.lengths_N[document])
    slots_1LS, _ = cells.slots(which, torch.zeros(1, dtype=torch.int64), length)
    return reading.memory(MEMORY, slots_1LS[0])
