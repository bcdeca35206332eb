"""Which strings are asked for: places in documents of a snapshot's memories, in a host's tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.composition.params import CompositionParams
from tasks.errors import TooLittleText

_TRIES = 20
"""Places of a document that are tried before it is left out: one may begin inside a character."""
_BROKEN = "\ufffd"


@dataclass(frozen=True)
class Passage:
    """A cue and the string after it in the document of a memory, as token ids of a host and as text."""

    element: str
    learned: str
    """Whether the shadow was written from the document: yes, no, or unknown."""
    cue_T: tuple[int, ...]
    target_T: tuple[int, ...]
    cue: str
    target: str


def draw_passages(
    documents: Mapping[str, str],
    learned: Callable[[str], str],
    encode: Callable[[str], list[int]],
    decode: Callable[[Sequence[int]], str],
    params: CompositionParams,
) -> list[Passage]:
    """One passage of each of `params.passages` documents, drawn from the seed; fewer where there are fewer.

    Of documents that a shadow was written from, by `learned` of their text, and of others half each are taken
    where both are known. Raises `TooLittleText` where no document is long enough.
    """
    draws = np.random.default_rng([params.seed, 0])
    names = sorted(documents)
    groups: dict[str, list[str]] = {}
    for place in draws.permutation(len(names)):
        name = names[place]
        groups.setdefault(learned(documents[name]), []).append(name)
    found: list[Passage] = []
    for number, (said, group) in enumerate(sorted(groups.items(), key=lambda one: len(one[1]))):
        wanted = (params.passages - len(found)) // (len(groups) - number)
        taken: list[Passage] = []
        for name in group:
            if len(taken) == wanted:
                break
            passage = _place(name, said, encode(documents[name]), decode, params, draws)
            taken += [] if passage is None else [passage]
        found += taken
    if len(found) < 2:
        raise TooLittleText(
            f"{len(found)} of {len(documents)} documents have {params.cue_tokens + params.target_tokens} "
            "tokens of the host; build more memories, or shorten composition.cue_tokens and target_tokens"
        )
    return sorted(found, key=lambda one: one.element)


def _place(
    name: str,
    learned: str,
    ids: list[int],
    decode: Callable[[Sequence[int]], str],
    params: CompositionParams,
    draws: np.random.Generator,
) -> Passage | None:
    length = params.cue_tokens + params.target_tokens
    if len(ids) < length:
        return None
    for _ in range(_TRIES):
        start = int(draws.integers(len(ids) - length + 1))
        middle = start + params.cue_tokens
        cue_T, target_T = tuple(ids[start:middle]), tuple(ids[middle : start + length])
        cue, target = decode(cue_T), decode(target_T)
        if cue.strip() and target.strip() and _BROKEN not in cue + target:
            return Passage(name, learned, cue_T, target_T, cue, target)
    return None
