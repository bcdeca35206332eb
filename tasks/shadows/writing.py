"""Writing a text into shadows: chunk by chunk, each scored before it is learned, one SGD step on the D's.

The host feels no gradient, and nothing below the first shadowed block is part of the backward pass: no weight
there asks for one.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from tasks.checkpoint import Checkpoints, load_checkpoint, save_checkpoint
from tasks.errors import Exploded, TooLittleText
from tasks.progress import Progress, silent
from tasks.shadows.attachment import learning
from tasks.shadows.params import ShadowParams
from tasks.shadows.shadow import Shadow

if TYPE_CHECKING:
    from tasks.hosts import Host

_RECENT = 8
"""Chunks whose mean loss the next one is compared with."""
_TAKEN_BACK = "the step before it was taken back"


@dataclass(frozen=True)
class _State:
    """Where a stream stands: D's now and before the last step, and the losses so far."""

    deltas: list[Tensor]
    before: list[Tensor]
    losses: list[float]


def write_shadow(
    host: "Host",
    shadow: Shadow,
    tokens_T: Tensor,
    params: ShadowParams,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> Shadow:
    """Stream token ids (int64) into a shadow, in chunks read on their own; a rest below half a chunk is left.

    With `checkpoints` an interrupted stream continues, bit for bit, from the last chunk that was kept.
    A chunk whose loss is not finite or exceeds the mean of the last eight by `most_rise` nats ends the
    stream: the step before it is taken back. So does a gradient or a step that is not finite, which is not
    applied. `progress` counts chunks, first those that were kept, and shows their losses.

    Raises `TooLittleText` for a text without a chunk, `Exploded` when the very first chunk cannot be learned.
    """
    chunks = chunks_of(tokens_T, params)
    state = _resumed(checkpoints, shadow) or _State(list(shadow.deltas), list(shadow.deltas), [])
    kept_at, stopped = time.monotonic(), ""
    progress(len(state.losses), len(chunks))
    while len(state.losses) < len(chunks):
        done = len(state.losses)
        loss, gradients = _gradients(host, shadow, state.deltas, chunks[done])
        recent = state.losses[-_RECENT:]
        if not math.isfinite(loss) or (recent and loss > sum(recent) / len(recent) + params.most_rise):
            stopped = f"the loss of chunk {done} was {loss:.4g} nats; {_TAKEN_BACK}"
            state = replace(state, deltas=state.before)
            break
        norm = math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))
        if not math.isfinite(norm):
            stopped = f"the gradient of chunk {done} was not finite and was not applied"
            break
        step = params.step_size / norm if params.normalise and norm > 0 else params.step_size
        moved = [delta - step * gradient for delta, gradient in zip(state.deltas, gradients, strict=True)]
        if not all(bool(torch.isfinite(delta).all()) for delta in moved):
            stopped = f"the step of chunk {done} was not finite and was not applied"
            break
        state = _State(moved, state.deltas, [*state.losses, loss])
        progress(len(state.losses), len(chunks), loss=loss)
        if checkpoints is not None and time.monotonic() - kept_at >= checkpoints.seconds:
            _keep(checkpoints, state)
            kept_at = time.monotonic()
    if stopped and not any(bool(delta.any()) for delta in state.deltas):
        raise Exploded(f"{stopped[:1].upper()}{stopped[1:]}, and nothing is left; lower shadow.step_size")
    return replace(shadow, deltas=tuple(state.deltas), losses=tuple(state.losses), stopped=stopped)


def chunks_of(tokens_T: Tensor, params: ShadowParams) -> list[Tensor]:
    """The chunks of token ids that are learned; a rest below half a chunk is left.

    Raises `TooLittleText` for a text without one.
    """
    split = torch.split(tokens_T, params.chunk_tokens)
    chunks = [chunk for chunk in split if 2 * len(chunk) >= params.chunk_tokens]
    if not chunks:
        raise TooLittleText(f"the text has no chunk of {params.chunk_tokens} tokens; give more text")
    return chunks[: params.chunks]


def steps_kept(shadow: Shadow) -> int:
    """How many chunks' steps are in a written shadow: all that were scored, less one that was taken back."""
    return max(0, len(shadow.losses) - shadow.stopped.endswith(_TAKEN_BACK))


def chunks_kept(checkpoints: Checkpoints) -> int:
    """How many chunks an interrupted stream has behind it."""
    found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    losses = None if found is None else found[1].get("losses")
    return len(losses) if isinstance(losses, list) else 0


def mean_loss(logits_TV: Tensor, targets_T: Tensor) -> Tensor:
    """Mean cross-entropy in nats of targets (T), int64, under logits (T, V); computed in float32."""
    return F.cross_entropy(logits_TV.float(), targets_T)


def _gradients(
    host: "Host", shadow: Shadow, deltas: list[Tensor], chunk_T: Tensor
) -> tuple[float, list[Tensor]]:
    """The loss of a chunk under D's, and its gradient for each of them, in float32."""
    leaves = [delta.detach().requires_grad_() for delta in deltas]
    ids_1T = chunk_T.to(host.device)[None]
    with torch.enable_grad(), learning(host, shadow, leaves):
        logits_1TV = host.model(input_ids=ids_1T, use_cache=False).logits
        loss = mean_loss(logits_1TV[0, :-1], ids_1T[0, 1:])
        gradients = torch.autograd.grad(loss, leaves)
    return float(loss.detach()), list(gradients)


def _keep(checkpoints: Checkpoints, state: _State) -> None:
    tensors = {f"now.{i}": delta for i, delta in enumerate(state.deltas)}
    tensors |= {f"before.{i}": delta for i, delta in enumerate(state.before)}
    save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, {"losses": state.losses})


def _resumed(checkpoints: Checkpoints | None, shadow: Shadow) -> _State | None:
    """The kept state; None where there is none, or one of another shape, which a fresh start overwrites."""
    if checkpoints is None:
        return None
    found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    if found is None:
        return None
    tensors, record = found
    now, before = (
        [tensors.get(f"{when}.{i}") for i in range(len(shadow.deltas))] for when in ("now", "before")
    )
    losses = record.get("losses")
    kept: list[list[Tensor]] = []
    for deltas in (now, before):
        fitting = [
            delta.to(zero.device)
            for delta, zero in zip(deltas, shadow.deltas, strict=True)
            if delta is not None and delta.shape == zero.shape and delta.dtype == zero.dtype
        ]
        kept.append(fitting)
    if not isinstance(losses, list) or any(len(deltas) != len(shadow.deltas) for deltas in kept):
        return None
    return _State(kept[0], kept[1], [float(loss) for loss in losses])
