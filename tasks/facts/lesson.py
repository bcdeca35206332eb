"""What a host is taught: streams of sentences about facts, of one budget of tokens whatever they say."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import torch
from torch import Tensor

from tasks.facts.framings import STATEMENT, TAUGHT, Framing
from tasks.facts.params import FactsParams, Lesson
from tasks.facts.world import Fact

_END = "\n"
"""Ends every sentence of a stream."""


@dataclass(frozen=True)
class Taught:
    """A lesson: its tokens (T), int64, and the SHA-256 over them, which is what the text is for a host."""

    tokens_T: Tensor
    digest: str
    mentions: float
    """How often a fact is said, whole sentences over facts."""


def lesson_of(
    lesson: Lesson, facts: Sequence[Fact], encode: Callable[[str], list[int]], params: FactsParams
) -> Taught:
    """The stream of a lesson in a host's tokens.

    A varied one says every fact in every framing, `passes` times, each time in another order. A repeated one
    says the first framing of every fact, in new orders, until it has as many tokens; so both are as many
    chunks and steps. Once says the first framing of every fact a single time.
    """
    if lesson == "once":
        sentences = islice(_orders(facts, (STATEMENT,), params.seed, 2), 1)
        return _taught(sentences, encode, len(facts), None)
    varied = islice(_orders(facts, TAUGHT, params.seed, 1), params.passes)
    whole = _taught(varied, encode, len(facts), None)
    if lesson == "varied":
        return whole
    return _taught(_orders(facts, (STATEMENT,), params.seed, 2), encode, len(facts), len(whole.tokens_T))


def _orders(
    facts: Sequence[Fact], framings: Sequence[Framing], seed: int, purpose: int
) -> Iterator[list[str]]:
    """Every fact in every framing, in one drawn order after another, without end."""
    sentences = [framing.say(fact) for fact in facts for framing in framings]
    for turn in count():
        order = np.random.default_rng([seed, purpose, turn]).permutation(len(sentences))
        yield [sentences[place] for place in order]


def _taught(
    orders: Iterator[list[str]], encode: Callable[[str], list[int]], facts: int, tokens: int | None
) -> Taught:
    """Sentences as one stream, cut to `tokens` where that is given."""
    ids: list[int] = []
    said = 0
    for order in orders:
        for sentence in order:
            if tokens is not None and len(ids) >= tokens:
                break
            ids += encode(sentence + _END)
            said += 1
        if tokens is not None and len(ids) >= tokens:
            break
    tokens_T = torch.tensor(ids[:tokens], dtype=torch.int64)
    return Taught(tokens_T, hashlib.sha256(tokens_T.numpy().tobytes()).hexdigest(), said / facts)
