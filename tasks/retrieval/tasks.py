"""Addressing tasks drawn from elements: a cue and the tokens that it asks for (FEM-ASM, addressing).

The text names four kinds: prefix completion, masked-span restoration, value restoration and quote
continuation. All are coordinate-assisted: their cues are cut from the evidence's own tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from tasks.retrieval.cues import NO_TOKEN

T = TypeVar("T")


def _nothing() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class CueTask:
    """A cue whose answer is known.

    `cue` (ids, NO_TOKEN in its gap) ends right before token `offset` of element `name`. Either the
    `continuation` (ids) that follows it is asked for, or the tokens that its gap hides, `masked` (ids).
    """

    cue: np.ndarray
    name: str
    offset: int
    continuation: np.ndarray = field(default_factory=_nothing)
    masked: np.ndarray = field(default_factory=_nothing)

    @property
    def answer(self) -> np.ndarray:
        """The ids that are asked for."""
        return self.masked if len(self.masked) else self.continuation

    @cached_property
    def passage(self) -> np.ndarray:
        """The element's own ids under the cue, its gap filled, and its continuation."""
        filled = self.cue.astype(np.int64)
        filled[filled == NO_TOKEN] = self.masked
        return np.concatenate([filled, self.continuation])


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
    return [
        _continued(name, texts[name], begin + cue_tokens, cue_tokens, continuation_tokens)
        for name, begin in _anywhere(texts, count, cue_tokens + continuation_tokens, generator)
    ]


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
    return [
        _continued(name, texts[name], begin + cue_tokens, cue_tokens, continuation_tokens)
        for name, begin in _chosen(places, count, generator)
    ]


def span_tasks(
    texts: Mapping[str, np.ndarray],
    *,
    count: int,
    cue_tokens: int,
    span_tokens: int,
    generator: np.random.Generator,
) -> list[CueTask]:
    """`count` spans to restore, drawn as by `quote_tasks`: half of the cue's tokens stand before the gap.

    The length of the gap is part of the cue (ours).
    """
    left = cue_tokens // 2
    return [
        _restored(texts, name, begin + left, span_tokens, cue_tokens)
        for name, begin in _anywhere(texts, count, cue_tokens + span_tokens, generator)
    ]


def value_tasks(
    texts: Mapping[str, np.ndarray],
    *,
    count: int,
    cue_tokens: int,
    longest: int,
    value_V: np.ndarray,
    generator: np.random.Generator,
) -> list[CueTask]:
    """`count` values to restore from the tokens on both sides, drawn uniformly from all values.

    A value is a run of at most `longest` tokens of which all are values by `value_V` (bool) and the
    neighbours are not.
    """
    left = cue_tokens // 2
    places = [
        (name, (begin, end - begin))
        for name in sorted(texts)
        for begin, end in _value_runs(value_V[texts[name]])
        if end - begin <= longest and begin >= left and end + cue_tokens - left <= len(texts[name])
    ]
    return [
        _restored(texts, name, begin, length, cue_tokens)
        for name, (begin, length) in _chosen(places, count, generator)
    ]


def rare_tokens(texts: Mapping[str, np.ndarray], vocab_size: int, most: int) -> np.ndarray:
    """Which tokens (V,) bool occur in at least one element and in at most `most`."""
    elements_V = np.zeros(vocab_size, dtype=np.int64)
    for ids in texts.values():
        elements_V[np.unique(ids)] += 1
    rare: np.ndarray = (elements_V > 0) & (elements_V <= most)
    return rare


def _anywhere(
    texts: Mapping[str, np.ndarray], count: int, span: int, generator: np.random.Generator
) -> Iterator[tuple[str, int]]:
    """`count` elements, drawn uniformly, and a place in each where `span` tokens begin."""
    names = [name for name in sorted(texts) if len(texts[name]) >= span]
    chosen = generator.integers(len(names), size=count if names else 0)
    places = generator.random(len(chosen))
    for element, place in zip(chosen, places, strict=True):
        name = names[element]
        yield name, int(place * (len(texts[name]) - span + 1))


def _chosen(
    places: Sequence[tuple[str, T]], count: int, generator: np.random.Generator
) -> list[tuple[str, T]]:
    """At most `count` of the places, drawn uniformly, in their order."""
    return [places[place] for place in sorted(generator.permutation(len(places))[:count])]


def _value_runs(value_L: np.ndarray) -> list[tuple[int, int]]:
    """Bounds of the maximal runs of values in a text."""
    edge = np.flatnonzero(np.diff(np.concatenate([[False], value_L, [False]]).astype(np.int8)))
    return list(zip(edge[::2].tolist(), edge[1::2].tolist(), strict=True))


def _continued(name: str, ids: np.ndarray, offset: int, cue_tokens: int, continuation_tokens: int) -> CueTask:
    return CueTask(
        ids[offset - cue_tokens : offset], name, offset, ids[offset : offset + continuation_tokens]
    )


def _restored(
    texts: Mapping[str, np.ndarray], name: str, begin: int, length: int, cue_tokens: int
) -> CueTask:
    """The task to restore `length` tokens from `begin` on."""
    ids, left = texts[name], cue_tokens // 2
    end = begin + length + cue_tokens - left
    cue = ids[begin - left : end].astype(np.int64)
    cue[left : left + length] = NO_TOKEN
    return CueTask(cue, name, end, masked=ids[begin : begin + length].astype(np.int64))
