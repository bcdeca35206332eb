"""Attachments: elements of one kind, placed at the nodes of a batch (FEM-ASM, support operator).

Node ``i`` predicts the token at position ``i + 1``, so evidence about the token at position ``p`` supports
node
``p - 1``. Node ``i`` may see an element only if ``i >= boundary``: content stored before the prompt began has
boundary 0, content that came to be after position ``a`` was read has boundary ``a``. The boundary guards the
element's content; the decision to attach it must not depend on unavailable target tokens either.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

MEMORY = "memory"
TEXT = "text"
SKILL_TOKENS = "skill_tokens"
"""The token that a skill's result has at an output slot, as its code."""
SKILL_CHARACTERS = "skill_characters"
"""The characters of that token."""
SKILL_RESULT = "skill_result"
"""A skill's whole result, the same at every output slot."""


@dataclass(frozen=True)
class Attachment:
    """Elements of one kind for one batch.

    Attributes:
        kind: name of the adapter; provenance is deliberately not part of what the core can read.
        source_EU: float32, source states ``u_e``.
        row_E: int64, batch row.
        node_E: int64, target node (position in the sequence, from 0).
        boundary_E: int64, first position at which the element is available.
        weight_E: float32, ``w_e >= 0``; zero is the same as absence.
    """

    kind: str
    source_EU: Tensor
    row_E: Tensor
    node_E: Tensor
    boundary_E: Tensor
    weight_E: Tensor

    def __post_init__(self) -> None:
        count = self.source_EU.shape[0]
        for name in ("row_E", "node_E", "boundary_E", "weight_E"):
            if getattr(self, name).shape != (count,):
                raise ValueError(f"Attachment of kind {self.kind!r}: {name} must have shape ({count},).")
        if count and float(self.weight_E.detach().min()) < 0:
            raise ValueError(f"Attachment of kind {self.kind!r}: weights must not be negative.")

    def __len__(self) -> int:
        return self.source_EU.shape[0]

    def select(self, keep_E: Tensor) -> "Attachment":
        """The elements where ``keep_E`` (bool, or int64 indices) selects."""
        return Attachment(
            self.kind,
            self.source_EU[keep_E],
            self.row_E[keep_E],
            self.node_E[keep_E],
            self.boundary_E[keep_E],
            self.weight_E[keep_E],
        )

    def rows(self, start: int, stop: int) -> "Attachment":
        """The elements of rows ``start <= b < stop``, as rows of a batch that begins with row ``start``."""
        part = self.select((self.row_E >= start) & (self.row_E < stop))
        return replace(part, row_E=part.row_E - start)

    def supported(self, start: int, stop: int) -> "Attachment":
        """The elements that contribute to nodes ``start <= i < stop``.

        An element contributes where its node lies in the window, its weight is positive and the node is not
        before its availability boundary. Dropping the others, instead of multiplying them by zero, is what
        makes absence exact.
        """
        keep_E = (self.weight_E > 0) & (self.node_E >= self.boundary_E)
        return self.select(keep_E & (self.node_E >= start) & (self.node_E < stop))


def supported_attachments(attachments: Sequence[Attachment], start: int, stop: int) -> list[Attachment]:
    """The non-empty supported parts of ``attachments`` for a window of nodes."""
    parts = (attachment.supported(start, stop) for attachment in attachments)
    return [part for part in parts if len(part)]


def aligned(
    kind: str,
    source_BLU: Tensor,
    valid_BL: Tensor,
    weight_B: Tensor,
    boundary_B: Tensor | None = None,
) -> Attachment:
    """Attach states that are aligned with a batch's own positions.

    Args:
        source_BLU: float, ``source_BLU[b, p]`` speaks about the token at position ``p`` of row ``b``.
        valid_BL: bool, whether there is such a state (documents end, matches begin late).
        weight_B: float, one weight per row.
        boundary_B: int64, availability boundary per row; default 0, stored before the prompt.

    Position 0 has no node before it, so its state is never attached. Rows of weight zero give no element.
    """
    usable_BL = valid_BL.clone()
    usable_BL[:, 0] = False
    usable_BL &= weight_B[:, None] > 0
    row_E, position_E = usable_BL.nonzero(as_tuple=True)
    if boundary_B is None:
        boundary_B = torch.zeros_like(weight_B, dtype=torch.int64)
    return Attachment(
        kind,
        source_BLU[row_E, position_E].to(torch.float32),
        row_E,
        position_E - 1,
        boundary_B[row_E],
        weight_B[row_E].to(torch.float32),
    )
