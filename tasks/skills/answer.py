"""Asking the core: every prompt is read once, then answered under one condition after another.

No element supports a node before the last of a prompt, so the states up to there are the same whatever is
attached later. From them on all rows stand at one position, and prompts of different lengths are answered
together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import CoreState, ResidualCore
from tasks.corpus import EOS, PAD
from tasks.evaluation import greedy
from tasks.skills.render import Interface, Renderer

_CHUNK = 256


@dataclass(frozen=True)
class Answer:
    """What the core made of one prompt.

    `written` are the tokens it wrote, int64 (slots,), whether or not it ended before; `nll` is the mean NLL
    in nats of the expected answer's tokens, its end among them, each given the true ones before.
    """

    written: NDArray[np.int64]
    nll: float

    @property
    def length(self) -> int:
        """Tokens before the end that the core wrote; all of them if it wrote none."""
        ends = np.flatnonzero(self.written == EOS)
        return int(ends[0]) if len(ends) else len(self.written)


@dataclass(frozen=True)
class ReadPrompts:
    """Prompts that a core has read up to their last token, at which all of them are taken to stand.

    `last_N1` int64, that token; `pasts` as in `CoreState`, over all prompts; `position` of the last token.
    """

    last_N1: Tensor
    pasts: tuple[Tensor, ...]
    position: int

    def __len__(self) -> int:
        return len(self.last_N1)

    def state(self, rows: slice) -> CoreState:
        """The state before the last token of some prompts."""
        return CoreState(self.position, tuple(past[rows] for past in self.pasts), None)


@torch.no_grad()
def read_prompts(core: ResidualCore, prompts: Sequence[NDArray[np.int64]]) -> ReadPrompts:
    """Read prompts (token ids, two or more each); those of one length together, without padding."""
    lengths = np.array([len(prompt) for prompt in prompts])
    order: list[int] = []
    parts: list[tuple[Tensor, ...]] = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        for first in range(0, len(rows), _CHUNK):
            chosen = rows[first : first + _CHUNK]
            tokens_BL = torch.from_numpy(np.stack([prompts[row][:-1] for row in chosen]))
            parts.append(core.continue_from(tokens_BL)[1].pasts)
            order.extend(int(row) for row in chosen)
    back = torch.from_numpy(np.argsort(order))
    pasts = tuple(torch.cat(layer)[back] for layer in zip(*parts, strict=True))
    last_N1 = torch.tensor([[int(prompt[-1])] for prompt in prompts])
    return ReadPrompts(last_N1, pasts, int(lengths.max()) - 1)


@torch.no_grad()
def answer(
    core: ResidualCore,
    renderer: Renderer,
    prompts: ReadPrompts,
    interface: Interface,
    results: Sequence[NDArray[np.int64] | None],
    expected: Sequence[NDArray[np.int64]],
) -> list[Answer]:
    """Attach results (token ids, None for nothing) by an interface, and let the core write.

    Decoding is greedy; every step keeps the whole history of attachments, as in training. `expected` are the
    answers whose likelihood is measured.
    """
    found: list[Answer] = []
    for first in range(0, len(prompts), _CHUNK):
        rows = slice(first, min(first + _CHUNK, len(prompts)))
        count = rows.stop - rows.start
        attached = renderer.attach(interface, results[rows], [prompts.position + 1] * count)
        state, last_B1 = prompts.state(rows), prompts.last_N1[rows]
        first_B1V, following = core.continue_from(last_B1, attached, state)
        written_BT = greedy(core, first_B1V, following, renderer.params.slots, attached).numpy()
        target_BT, is_target_BT = _padded(expected[rows])
        logits_BTV, _ = core.continue_from(torch.cat([last_B1, target_BT[:, :-1]], 1), attached, state)
        nll_BT = -logits_BTV.gather(-1, target_BT[..., None]).squeeze(-1) * is_target_BT
        nll_B = nll_BT.to(torch.float64).sum(1) / is_target_BT.sum(1)
        found += [Answer(written, float(nll)) for written, nll in zip(written_BT, nll_B, strict=True)]
    return found


def _padded(answers: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Answers with their ends (B, T) int64, padded behind, and which tokens are theirs (B, T) bool."""
    length = max(len(ids) for ids in answers) + 1
    target_BT = torch.full((len(answers), length), PAD)
    is_target_BT = torch.zeros(len(answers), length, dtype=torch.bool)
    for row, ids in enumerate(answers):
        target_BT[row, : len(ids)] = torch.from_numpy(ids)
        target_BT[row, len(ids)] = EOS
        is_target_BT[row, : len(ids) + 1] = True
    return target_BT, is_target_BT
