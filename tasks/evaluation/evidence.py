"""Turning planned evidence into attachments: read, check against the prompt, weigh, place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import MEMORY, TEXT, Attachment, CellTable, TokenTable, agreement_weight, aligned
from tasks.codec import Binary16
from tasks.evaluation.conditions import Condition, Placement


@dataclass(frozen=True)
class Shown:
    """The evidence of one batch: attachments, the weight of each task's evidence, and the bytes it cost to
    read.
    """

    attachments: tuple[Attachment, ...]
    weight_B: NDArray[np.float32]
    bytes_B: NDArray[np.int64]

    def attached(self) -> NDArray[np.int64]:
        """States attached to each task (B,)."""
        rows = [part.row_E.numpy() for part in self.attachments]
        return np.bincount(np.concatenate([*rows, np.zeros(0, np.int64)]), minlength=len(self.weight_B))


class EvidenceReader:
    """Reads the elements that a plan names, as cells or as their documents' own tokens."""

    def __init__(
        self,
        cells: CellTable,
        text: TokenTable,
        order: Mapping[str, int],
        stored_bytes: Mapping[str, int],
        identity: Binary16,
        *,
        margin: float,
        seed: int,
    ) -> None:
        """`order` gives each element's place in both tables, `stored_bytes` its payload's length."""
        self.cells = cells
        self.text = text
        self.order = order
        self.stored_bytes = stored_bytes
        self.identity = identity
        self.margin = margin
        self.seed = seed

    def show(
        self,
        condition: Condition,
        placements: Sequence[Placement | None],
        prompt_BC: Tensor,
        length: int,
        first: int,
    ) -> Shown:
        """The evidence of a batch of tasks whose sequences have `length` tokens.

        `first` is the number of the batch's first task; with the seed it fixes the shuffles. The whole
        history is attached: every position of prompt and target that the element covers.
        """
        rows = len(placements)
        chosen = [row for row, placement in enumerate(placements) if placement is not None]
        weight_B = torch.zeros(rows)
        bytes_B = np.zeros(rows, np.int64)
        if condition is Condition.NONE or not chosen:
            return Shown((), weight_B.numpy(), bytes_B)
        named = [placements[row] or Placement("", 0) for row in chosen]
        document_R = torch.tensor([self.order[placement.element] for placement in named])
        start_R = torch.tensor([placement.start for placement in named])
        if condition is Condition.RAW_TEXT:
            ids_RL, valid_RL = self.text.tokens(document_R, start_R, length)
            source_RLU, kind = self.identity.code(ids_RL), TEXT
            bytes_B[chosen] = 2 * self.text.lengths_N[document_R].numpy()
        else:
            source_RLU, valid_RL = self.cells.slots(document_R, start_R, length)
            ids_RL, kind = self.cells.tokens(source_RLU[:, : prompt_BC.shape[1]]), MEMORY
            bytes_B[chosen] = [self.stored_bytes[placement.element] for placement in named]
        weight_B[chosen] = (
            self._weights(ids_RL, valid_RL, prompt_BC[chosen])
            if condition.weighed
            else torch.ones(len(chosen))
        )
        if condition is Condition.SHUFFLED:
            source_RLU = _shuffled(source_RLU, np.random.default_rng([self.seed, 2, first]))
        source_BLU = source_RLU.new_zeros(rows, length, source_RLU.shape[-1])
        valid_BL = torch.zeros(rows, length, dtype=torch.bool)
        source_BLU[chosen], valid_BL[chosen] = source_RLU, valid_RL
        attached = aligned(kind, source_BLU, valid_BL, weight_B)
        return Shown((attached,) if len(attached) else (), weight_B.numpy(), bytes_B)

    def _weights(self, ids_RL: Tensor, valid_RL: Tensor, prompt_RC: Tensor) -> Tensor:
        """The system's own weight per row, from the prompt's positions that the evidence covers."""
        cue = prompt_RC.shape[1]
        weights = []
        for ids_L, valid_L, prompt_C in zip(ids_RL, valid_RL, prompt_RC, strict=True):
            covered_C = valid_L[:cue]
            evidence = ids_L[:cue][covered_C].numpy()
            weights.append(agreement_weight(evidence, prompt_C[covered_C].numpy(), margin=self.margin))
        return torch.tensor(weights, dtype=torch.float32)


def _shuffled(source_RLU: Tensor, rng: np.random.Generator) -> Tensor:
    """The same states in a random order within each row."""
    order_RL = torch.from_numpy(
        rng.permuted(np.tile(np.arange(source_RLU.shape[1]), (len(source_RLU), 1)), axis=1)
    )
    return source_RLU.gather(1, order_RL[..., None].expand_as(source_RLU))
