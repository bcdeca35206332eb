"""Synthetic token streams of any size with the n-gram statistics of real text.

A Markov chain over the token ids of the documentation that is installed here: the next token is the one that
follows a random other occurrence of the last one (bigrams) or of the last two (trigrams) in the source. So
tokens are as frequent as in the source, which is Zipfian, and so are their pairs; every text is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

REPEATED = 64
"""Tokens of a passage that two texts share."""


@dataclass(frozen=True)
class Chain:
    """A source of tokens and, for one and for two tokens of context, its positions grouped by context."""

    tokens_N: np.ndarray
    grouped: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]

    @classmethod
    def of(cls, texts: Sequence[np.ndarray]) -> Chain:
        """The chain of some texts, end to end and closed to a ring, so that every position has a next one."""
        tokens_N = np.concatenate(texts).astype(np.int64)
        pair_N = np.roll(tokens_N, 1) * (tokens_N.max() + 1) + tokens_N
        return cls(tokens_N, (_groups(tokens_N), _groups(pair_N)))

    def sample(self, length_E: np.ndarray, *, trigrams: float, draw: np.random.Generator) -> np.ndarray:
        """Texts of these lengths end to end (uint16); a share `trigrams` of the steps looks at two tokens."""
        start_E1 = np.append(0, np.cumsum(length_E))
        made_N = np.empty(start_E1[-1], dtype=np.uint16)
        order = np.argsort(-length_E, kind="stable")
        place = draw.integers(len(self.tokens_N), size=len(order))
        for step in range(int(length_E.max(initial=0))):
            order = order[: np.searchsorted(-length_E[order], -step, side="left")]
            place = place[: len(order)]
            made_N[start_E1[order] + step] = self.tokens_N[place]
            deep = draw.random(len(order)) < trigrams
            chance = draw.random(len(order))
            for rows, (member_N, start_N, count_N) in zip((~deep, deep), self.grouped, strict=True):
                at = place[rows]
                place[rows] = member_N[start_N[at] + (chance[rows] * count_N[at]).astype(np.int64)]
            place = (place + 1) % len(self.tokens_N)
        return made_N


def synthetic_texts(
    source: Sequence[np.ndarray], *, elements: int, tokens: int, repeated: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (uint16) of `elements` texts end to end, about `tokens` in all, and their bounds (int64).

    Lengths are log-normal, from 80 tokens on. A share `repeated` of the texts holds a passage of another one.
    """
    draw = np.random.default_rng(seed)
    length_E = draw.lognormal(0.0, 0.8, size=elements)
    length_E = np.maximum(80, length_E * (tokens / length_E.sum())).astype(np.int64)
    made_N = Chain.of(source).sample(length_E, trigrams=0.5, draw=draw)
    start_E1 = np.append(0, np.cumsum(length_E))
    copies = draw.permutation(elements)[: 2 * (round(repeated * elements) // 2)].reshape(2, -1)
    for origin, target in copies.T.tolist():
        begin, end = (
            int(start_E1[one] + draw.integers(length_E[one] - REPEATED + 1)) for one in (origin, target)
        )
        made_N[end : end + REPEATED] = made_N[begin : begin + REPEATED]
    return made_N, start_E1


def _groups(key_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions ordered by key; for each position where its key's members begin there, and how many."""
    member_N = np.argsort(key_N, kind="stable")
    _, first, owner_N, count = np.unique(
        key_N[member_N], return_index=True, return_inverse=True, return_counts=True
    )
    start_N, count_N = np.empty_like(member_N), np.empty_like(member_N)
    start_N[member_N], count_N[member_N] = first[owner_N], count[owner_N]
    return member_N, start_N, count_N
