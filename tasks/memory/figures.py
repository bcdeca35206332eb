"""What a stored document reads back as: figures per document and pooled over many."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

SPAN = 8
"""Tokens of a span; a span counts as exact when all of them are read right."""


@dataclass(frozen=True)
class Figures:
    """Reconstruction of one document or of several together, measured on stored cells with the full softmax.

    `token_recall` and `loss` (nats) are means over tokens. `span8_exact` is the share of sliding windows of 8
    consecutive tokens, across block borders but inside a document, that are right throughout; a shorter
    document is one window. `steps` sums the adaptation steps of all blocks.
    """

    documents: int
    tokens: int
    blocks: int
    spans: int
    token_recall: float
    span8_exact: float
    loss: float
    steps: int
    cell_bytes: int

    @property
    def cell_bytes_per_block(self) -> float:
        """Bytes of stored numbers for one block."""
        return self.cell_bytes / max(self.blocks, 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON values, as kept in facts and notes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Figures from `to_dict`, or from facts that hold others as well."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def pool(figures: Iterable[Figures]) -> Figures:
    """Figures of several documents together: every token and every span counts once."""
    parts = list(figures)
    tokens = sum(part.tokens for part in parts)
    spans = sum(part.spans for part in parts)
    return Figures(
        documents=sum(part.documents for part in parts),
        tokens=tokens,
        blocks=sum(part.blocks for part in parts),
        spans=spans,
        token_recall=sum(part.token_recall * part.tokens for part in parts) / max(tokens, 1),
        span8_exact=sum(part.span8_exact * part.spans for part in parts) / max(spans, 1),
        loss=sum(part.loss * part.tokens for part in parts) / max(tokens, 1),
        steps=sum(part.steps for part in parts),
        cell_bytes=sum(part.cell_bytes for part in parts),
    )
