"""The text of a domain, parted into what is learned and what is held out before.

Held-out text has three purposes that never meet: `selection` steers a search, `guard` decides whether its
result is kept, `sealed` is only ever reported on.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.corpus import Document
from tasks.errors import TooLittleText
from tasks.shadows.documents import digest_of
from tasks.shadows.params import HeldParams

_MANY = 16
"""Documents from which on whole ones can be held out."""


@dataclass(frozen=True)
class Domain:
    """A text in four parts, each a row of token ids (int64); documents of a part are joined by `end`."""

    digest: str
    """SHA-256 over the digests of all documents: what the text is, wherever it lies."""
    by: str
    """`document` or `region`."""
    train_T: Tensor
    selection_T: Tensor
    guard_T: Tensor
    sealed_T: Tensor


def part(
    documents: Sequence[Document],
    encode: Callable[[str], list[int]],
    end: int,
    held: HeldParams,
    *,
    train_tokens: int,
    seed: int,
) -> Domain:
    """Part documents into at most `train_tokens` to learn, and what `held` takes aside first.

    By documents they are ordered by a digest of seed and text, so that neither their names nor their order
    decides. By regions the last tokens of the text are held out. Raises `TooLittleText` where nothing is left
    to learn although something should be.
    """
    by = held.split
    if by == "auto":
        by = "document" if len(documents) >= _MANY else "region"
    sizes = (held.sealed_tokens, held.guard_tokens, held.selection_tokens)
    digest = digest_of(documents)
    if by == "document":
        ordered = iter(sorted(documents, key=lambda document: _drawn(seed, document)))
        sealed, guard, selection = (_take(ordered, encode, end, size) for size in sizes)
        train = _take(ordered, encode, end, train_tokens) if train_tokens else []
    else:
        tokens = [token for document in documents for token in (*encode(document.text), end)]
        tokens, sealed = _cut(tokens, sizes[0])
        tokens, guard = _cut(tokens, sizes[1])
        tokens, selection = _cut(tokens, sizes[2])
        train = tokens[:train_tokens]
    parts = {"sealed": sealed, "guard": guard, "selection": selection}
    for (name, tokens), size in zip(parts.items(), sizes, strict=True):
        if len(tokens) < size:
            raise TooLittleText(
                f"the text has {len(tokens):,} of {size:,} tokens for its {name} part; give more text, or "
                "hold out less"
            )
    if train_tokens and not train:
        raise TooLittleText("the text leaves nothing to learn once text is held out; give more")
    train_T, selection_T, guard_T, sealed_T = (
        torch.tensor(tokens, dtype=torch.int64) for tokens in (train, selection, guard, sealed)
    )
    return Domain(digest, by, train_T, selection_T, guard_T, sealed_T)


def _drawn(seed: int, document: Document) -> str:
    return hashlib.sha256(f"{seed} {document.digest}".encode()).hexdigest()


def _take(
    documents: Iterator[Document], encode: Callable[[str], list[int]], end: int, size: int
) -> list[int]:
    """Tokens of whole documents until there are enough, then cut: what is left of the last is not used."""
    tokens: list[int] = []
    while len(tokens) < size and (document := next(documents, None)) is not None:
        tokens += [*encode(document.text), end]
    return tokens[:size]


def _cut(tokens: list[int], size: int) -> tuple[list[int], list[int]]:
    at = max(0, len(tokens) - size)
    return tokens[:at], tokens[at:]
