"""Cues: token runs to look up, batched without padding waste, and cues drawn from elements for training and
tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.errors import BadQuery

NO_TOKEN = -1


@dataclass(frozen=True)
class CueBatch:
    """Q cues of length_Q tokens (int64): end to end in token_F with bounds start_Q1, and as rows of token_QL
    padded with -1."""

    token_F: np.ndarray
    start_Q1: np.ndarray
    token_QL: np.ndarray
    length_Q: np.ndarray

    @classmethod
    def of(cls, cues: Sequence[np.ndarray], vocab_size: int, longest: int) -> "CueBatch":
        """Batch cues of integer ids. Only the last `longest` tokens of a cue count: what follows it is
        asked for.

        Raises BadQuery for an empty cue or an id outside the vocabulary.
        """
        rows = [np.asarray(cue, dtype=np.int64).ravel()[-longest:] for cue in cues]
        length_Q = np.array([len(row) for row in rows], dtype=np.int64)
        if not length_Q.all():
            raise BadQuery("a cue has no tokens; give at least one token to search for")
        start_Q1 = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(length_Q, out=start_Q1[1:])
        token_F = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
        if len(token_F) and (token_F.min() < 0 or token_F.max() >= vocab_size):
            raise BadQuery(
                f"a cue holds token id {token_F.max()} or {token_F.min()}, outside the index's vocabulary of "
                f"{vocab_size}; encode it with the snapshot's tokenizer"
            )
        width = int(length_Q.max(initial=1))
        token_QL = np.full((len(rows), width), NO_TOKEN, dtype=np.int64)
        token_QL[np.arange(width) < length_Q[:, None]] = token_F
        return cls(token_F, start_Q1, token_QL, length_Q)

    def __len__(self) -> int:
        return len(self.token_QL)

    def row(self, query: int) -> np.ndarray:
        """The token ids (int64) of one cue."""
        tokens: np.ndarray = self.token_QL[query, : self.length_Q[query]]
        return tokens


@dataclass(frozen=True)
class CueTask:
    """A cue whose answer is known: `continuation` (ids) follows it in element `name`, at token `offset`."""

    cue: np.ndarray
    name: str
    offset: int
    continuation: np.ndarray


def quote_tasks(
    texts: Mapping[str, np.ndarray],
    *,
    count: int,
    cue_tokens: int,
    continuation_tokens: int,
    generator: np.random.Generator,
) -> list[CueTask]:
    """`count` cues from anywhere in the elements' tokens, elements and places drawn uniformly.

    Elements too short for a cue and its continuation are left out; none left gives no task.
    """
    span = cue_tokens + continuation_tokens
    names = [name for name in sorted(texts) if len(texts[name]) >= span]
    chosen = generator.integers(len(names), size=count if names else 0)
    places = generator.random(len(chosen))
    tasks = []
    for element, place in zip(chosen, places, strict=True):
        name = names[element]
        offset = int(place * (len(texts[name]) - span + 1)) + cue_tokens
        tasks.append(_task(name, texts[name], offset, cue_tokens, continuation_tokens))
    return tasks


def prefix_tasks(
    texts: Mapping[str, np.ndarray],
    *,
    count: int,
    cue_tokens: int,
    continuation_tokens: int,
    block_tokens: int,
    generator: np.random.Generator,
) -> list[CueTask]:
    """`count` cues that begin a block of an element (the element itself for block 0), drawn uniformly."""
    span = cue_tokens + continuation_tokens
    places = [
        (name, begin)
        for name in sorted(texts)
        for begin in range(0, len(texts[name]) - span + 1, block_tokens)
    ]
    chosen = generator.permutation(len(places))[:count]
    return [
        _task(name, texts[name], begin + cue_tokens, cue_tokens, continuation_tokens)
        for name, begin in (places[place] for place in sorted(chosen))
    ]


def _task(name: str, ids: np.ndarray, offset: int, cue_tokens: int, continuation_tokens: int) -> CueTask:
    return CueTask(
        ids[offset - cue_tokens : offset], name, offset, ids[offset : offset + continuation_tokens]
    )


def corrupted(cue: np.ndarray, share: float, vocab_size: int, generator: np.random.Generator) -> np.ndarray:
    """A copy of the cue with each token replaced by a random one with probability `share`."""
    changed = generator.random(len(cue)) < share
    return np.where(changed, generator.integers(vocab_size, size=len(cue)), cue)
