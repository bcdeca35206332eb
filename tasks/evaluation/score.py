"""Scoring a batch: likelihood of the true continuation, and the continuation the core writes itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import Attachment, CoreState, ResidualCore

Attach = Callable[[Tensor, int], Sequence[Attachment]]
"""Tokens of a sequence so far (B, L) and a node -> the attachments to the nodes from there on."""


@dataclass(frozen=True)
class Scores:
    """nll_BT float32, nats of each true target token given the true ones before it; right_BT bool, whether
    it was the most likely one; written_BT int64, the greedy continuation."""

    nll_BT: NDArray[np.float32]
    right_BT: NDArray[np.bool_]
    written_BT: NDArray[np.int64]


@torch.no_grad()
def score(
    core: ResidualCore,
    cue_BC: Tensor,
    target_BT: Tensor,
    attachments: Sequence[Attachment] | Attach = (),
) -> Scores:
    """Score targets after cues (int64 ids). The prompt is read once, for the forced and the greedy
    continuation.

    Attachments cover prompt and target, or are asked for with the tokens so far, window by window: first the
    prompt's, then the target's. Greedy decoding keeps the same full history of attachments as the forced pass
    and as training; only the tokens fed back, and what they ask for, are the core's own.
    """
    attach = attachments if callable(attachments) else lambda tokens_BL, start: attachments
    prompt_BCV, state = core.continue_from(cue_BC, attach(cue_BC, 0))
    first_B1V = prompt_BCV[:, -1:]
    forced_BL = torch.cat([cue_BC, target_BT[:, :-1]], 1)
    following_BTV, _ = core.continue_from(target_BT[:, :-1], attach(forced_BL, cue_BC.shape[1]), state)
    logits_BTV = torch.cat([first_B1V, following_BTV], 1)
    nll_BT = -logits_BTV.gather(-1, target_BT[..., None]).squeeze(-1)
    right_BT = logits_BTV.argmax(-1) == target_BT
    written_BT = greedy(core, first_B1V, state, target_BT.shape[1], attachments, cue_BC)
    return Scores(nll_BT.numpy(), right_BT.numpy(), written_BT.numpy())


@torch.no_grad()
def greedy(
    core: ResidualCore,
    last_B1V: Tensor,
    state: CoreState,
    count: int,
    attachments: Sequence[Attachment] | Attach = (),
    prompt_BC: Tensor | None = None,
) -> Tensor:
    """The `count` most likely tokens one after another (B, count), from the prompt's last logits and its
    state.

    Attachments that are asked for need the prompt's tokens, `prompt_BC`.
    """
    token_B1 = last_B1V.argmax(-1)
    written = [token_B1]
    for _ in range(count - 1):
        if callable(attachments):
            assert prompt_BC is not None, "what is asked for depends on the prompt"
            shown = attachments(torch.cat([prompt_BC, *written], 1), state.length)
        else:
            shown = attachments
        last_B1V, state = core.continue_from(token_B1, shown, state)
        token_B1 = last_B1V.argmax(-1)
        written.append(token_B1)
    return torch.cat(written, 1)
