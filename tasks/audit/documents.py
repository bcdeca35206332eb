"""The documents of an audit: one stream of tokens, and the side of the experiment of each document."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

import numpy as np
from numpy.typing import NDArray


class Side(IntEnum):
    """What a document was used for; the numbers are columns and bits in this room."""

    LANGUAGE = 0
    """In an even shard: tokenizer, codec and the core's language stream learned from it."""
    TRAIN = 1
    """Its memory is on the train side of the split by identity: the core learned from it."""
    VALIDATION = 2
    TEST = 3

    @property
    def label(self) -> str:
        return self.name.lower()


WORKER = (Side.TRAIN, Side.VALIDATION, Side.TEST)
"""Sides of the documents in odd shards, whose memories are elements."""
SEEN = (Side.LANGUAGE, Side.TRAIN, Side.VALIDATION)
"""Sides that training or tuning saw."""


@dataclass(frozen=True)
class AuditDocuments:
    """Documents by name and side. Document d owns tokens_N[start_D1[d]:start_D1[d + 1]] (uint16, int64)."""

    names: tuple[str, ...]
    side_D: NDArray[np.int64]
    start_D1: NDArray[np.int64]
    tokens_N: NDArray[np.uint16]

    @classmethod
    def of(cls, documents: Iterable[tuple[str, Side, NDArray[np.uint16]]]) -> "AuditDocuments":
        """Documents given as name, side and token ids, in any order; equal ones count once.

        One name may stand for several texts on a side: codec and core may have learned from different
        versions of a corpus.
        """
        ordered = sorted(documents, key=lambda d: (d[0], d[1], d[2].tobytes()))
        rows = [next(same) for _, same in groupby(ordered, key=lambda d: (d[0], d[1], d[2].tobytes()))]
        lengths = [len(ids) for _, _, ids in rows]
        return cls(
            tuple(name for name, _, _ in rows),
            np.array([side for _, side, _ in rows], np.int64),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            np.concatenate([*(ids.astype(np.uint16) for _, _, ids in rows), np.empty(0, np.uint16)]),
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens (D,) of each document."""
        return np.diff(self.start_D1)

    def tokens(self, document: int) -> NDArray[np.uint16]:
        """Token ids of one document."""
        return self.tokens_N[self.start_D1[document] : self.start_D1[document + 1]]

    def on(self, sides: Iterable[Side]) -> NDArray[np.bool_]:
        """Which documents (D,) are on one of some sides."""
        return np.isin(self.side_D, [int(side) for side in sides])

    def runs(self, most: int) -> list[tuple[int, int]]:
        """Ranges [first, last) of whole documents with about `most` tokens each, for work in small pieces."""
        found, first = [], 0
        while first < len(self):
            last = int(np.searchsorted(self.start_D1, self.start_D1[first] + most, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            found.append((first, last))
            first = last
        return found
