"""Standalone language figures of a core: no memory, no machine (FEM-ASM, standalone family)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.assembly import ResidualCore

_BATCH = 32


@dataclass(frozen=True)
class LanguageFigures:
    """NLL in nats per token; token perplexity is its exponential, word perplexity spreads the same nats
    over words.

    Word and token perplexity are different quantities. `tokens` and `words` were scored.
    """

    nll: float
    token_perplexity: float
    word_perplexity: float
    tokens: int
    words: int


@torch.no_grad()
def language_figures(
    core: ResidualCore,
    documents: Sequence[NDArray[np.integer]],
    decode: Callable[[NDArray[np.int64]], str],
    *,
    window: int,
    most: int,
) -> LanguageFigures | None:
    """Score the first whole windows of each document in turn, up to `most` tokens; None if there is no
    window.

    A window's first token is given, the others are scored. Words are counted by white space in the scored
    tokens' text.
    """
    windows: list[NDArray[np.int64]] = []
    for ids in documents:
        count = min(len(ids) // window, most // (window - 1) - len(windows))
        windows += list(np.asarray(ids[: count * window], np.int64).reshape(count, window))
    if not windows:
        return None
    nats = 0.0
    for start in range(0, len(windows), _BATCH):
        tokens_BL = torch.from_numpy(np.stack(windows[start : start + _BATCH]))
        logits_BLV = core(tokens_BL[:, :-1])
        nats -= float(logits_BLV.gather(-1, tokens_BL[:, 1:, None]).to(torch.float64).sum())
    tokens = len(windows) * (window - 1)
    words = sum(len(decode(ids[1:]).split()) for ids in windows)
    return LanguageFigures(
        nats / tokens, math.exp(nats / tokens), math.exp(min(nats / max(1, words), 700.0)), tokens, words
    )
