"""What became of documents: published or rejected, with the figures of their stored cells."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from store import Receipt, Ref
from tasks.memory.figures import Figures, pool


@dataclass(frozen=True)
class Outcome:
    """What became of one document: its element if it was published, and its figures either way."""

    name: str
    ref: Ref | None
    figures: Figures

    def to_dict(self) -> dict[str, Any]:
        """JSON values, as kept in a receipt's notes."""
        ref = None if self.ref is None else str(self.ref)
        return {"name": self.name, "ref": ref, "figures": self.figures.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The outcome of `to_dict`."""
        ref = None if values["ref"] is None else Ref.parse(values["ref"])
        return cls(values["name"], ref, Figures.from_dict(values["figures"]))


@dataclass(frozen=True)
class ShardResult:
    """The memories of a shard: receipts to commit, and every document's outcome in the order of names.

    `worked` counts the documents computed in this call; the others came from receipts or from the catalog.
    """

    shard: Ref
    receipts: tuple[Receipt, ...]
    outcomes: tuple[Outcome, ...]
    worked: int

    @property
    def published(self) -> list[Ref]:
        """The element of every accepted document, including those published by earlier builds."""
        return [outcome.ref for outcome in self.outcomes if outcome.ref is not None]

    @property
    def rejected(self) -> list[Outcome]:
        """The documents below the thresholds, with their figures."""
        return [outcome for outcome in self.outcomes if outcome.ref is None]

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `from_dict` takes back."""
        return {
            "shard": str(self.shard),
            "receipts": [receipt.to_dict() for receipt in self.receipts],
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "worked": self.worked,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result of `to_dict`."""
        return cls(
            shard=Ref.parse(values["shard"]),
            receipts=tuple(Receipt.from_dict(receipt) for receipt in values["receipts"]),
            outcomes=tuple(Outcome.from_dict(outcome) for outcome in values["outcomes"]),
            worked=values["worked"],
        )


def summarise(results: Iterable[ShardResult]) -> dict[str, Any]:
    """Pooled figures over all worker documents of some shards, the rejected ones included."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    total = pool(outcome.figures for outcome in outcomes)
    return {
        "documents": total.documents,
        "published": sum(outcome.ref is not None for outcome in outcomes),
        "rejected": sum(outcome.ref is None for outcome in outcomes),
        "token_recall": total.token_recall,
        "span8_exact": total.span8_exact,
        "loss": total.loss,
        "cell_bytes_per_block": total.cell_bytes_per_block,
        "blocks": total.blocks,
        "tokens": total.tokens,
        "steps": total.steps,
    }
