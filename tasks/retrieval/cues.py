"""Cues: token runs to look up, which may have gaps, batched without padding waste; and changed copies of
them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.errors import BadQuery
from tasks.retrieval.hashing import inside

NO_TOKEN = -1
"""Stands in a cue for a token that is not known, one for each: together a gap of known length (ours)."""


@dataclass(frozen=True)
class CueBatch:
    """Q cues of length_Q tokens (int64): end to end in token_F with bounds start_Q1, and as rows of token_QL
    padded with -1.

    visible_Q (int64) counts the tokens that are known, gap_Q (int64) is where a cue's first gap begins, -1
    where it has none.
    """

    token_F: np.ndarray
    start_Q1: np.ndarray
    token_QL: np.ndarray
    length_Q: np.ndarray
    visible_Q: np.ndarray
    gap_Q: np.ndarray

    @classmethod
    def of(cls, cues: Sequence[np.ndarray], vocab_size: int, longest: int) -> "CueBatch":
        """Batch cues of integer ids, with NO_TOKEN in their gaps. Only the last `longest` tokens of a cue
        count: what follows it is asked for.

        Raises BadQuery for a cue without tokens, one that begins or ends with a gap, or an id outside the
        vocabulary.
        """
        given = [np.asarray(cue, dtype=np.int64).ravel() for cue in cues]
        if not all(len(row) for row in given):
            raise BadQuery("a cue has no tokens; give at least one token to search for")
        if any(row[0] == NO_TOKEN or row[-1] == NO_TOKEN for row in given):
            raise BadQuery("a cue begins or ends with a gap; give known tokens on both sides of a gap")
        rows = [row[-longest:] for row in given]
        length_Q = np.array([len(row) for row in rows], dtype=np.int64)
        start_Q1 = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(length_Q, out=start_Q1[1:])
        token_F = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
        width = int(length_Q.max(initial=1))
        token_QL = np.full((len(rows), width), NO_TOKEN, dtype=np.int64)
        within_QL = np.arange(width) < length_Q[:, None]
        token_QL[within_QL] = token_F
        visible_Q = (token_QL != NO_TOKEN).sum(1)
        if len(token_F) and (token_F.min() < NO_TOKEN or token_F.max() >= vocab_size):
            raise BadQuery(
                f"a cue holds token id {token_F.max()} or {token_F.min()}, outside the index's vocabulary of "
                f"{vocab_size}; encode it with the snapshot's tokenizer"
            )
        gap_QL = within_QL & (token_QL == NO_TOKEN)
        gap_Q = np.where(gap_QL.any(1), gap_QL.argmax(1), -1)
        return cls(token_F, start_Q1, token_QL, length_Q, visible_Q, gap_Q)

    def __len__(self) -> int:
        return len(self.token_QL)

    def known(self, query: int) -> np.ndarray:
        """The token ids (int64) of one cue, its gaps closed."""
        row_L = self.token_QL[query]
        known: np.ndarray = row_L[row_L != NO_TOKEN]
        return known

    def runs(self, n: int) -> np.ndarray:
        """Which positions of token_F (bool) begin a run of n known tokens of one cue."""
        begins_F = inside(self.start_Q1, n)
        if (self.gap_Q >= 0).any():
            begins = np.flatnonzero(begins_F)
            unknown_F1 = np.append(0, np.cumsum(self.token_F == NO_TOKEN))
            begins_F[begins] = unknown_F1[begins + n] == unknown_F1[begins]
        return begins_F

    def run_counts(self, n: int) -> np.ndarray:
        """How many runs of n known tokens each cue has (int64)."""
        begun_F1 = np.append(0, np.cumsum(self.runs(n)))
        counts: np.ndarray = begun_F1[self.start_Q1[1:]] - begun_F1[self.start_Q1[:-1]]
        return counts


def corrupted(cue: np.ndarray, share: float, vocab_size: int, generator: np.random.Generator) -> np.ndarray:
    """A copy of a cue without gaps with each token replaced by a random one with probability `share`."""
    changed = generator.random(len(cue)) < share
    return np.where(changed, generator.integers(vocab_size, size=len(cue)), cue)


def changed_cues(
    cue: np.ndarray, shares: Sequence[float], vocab_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """For each share a copy (int64) of the cue with exactly that share of its known tokens changed.

    The number is rounded to whole tokens; a changed token is another one, drawn uniformly. What a smaller
    share changes, a greater one changes alike, so that rates differ by what is changed besides. Gaps stay.
    """
    known = generator.permutation(np.flatnonzero(cue != NO_TOKEN))
    other = (cue[known].astype(np.int64) + generator.integers(1, vocab_size, size=len(known))) % vocab_size
    copies = []
    for share in shares:
        count = round(share * len(known))
        copy = cue.astype(np.int64)
        copy[known[:count]] = other[:count]
        copies.append(copy)
    return copies
