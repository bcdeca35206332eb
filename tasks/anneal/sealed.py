"""What a shadow does to sealed text: losses of whole chunks under each condition, gains, drift, anatomy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tasks.anneal.params import SealedParams
from tasks.evaluation import interval, resampled_means
from tasks.progress import Progress, silent
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

Floats = NDArray[np.float64]
_ROWS = 4
"""Chunks read together: more are not faster on a processor, and their logits take memory."""


@dataclass(frozen=True)
class ChunkLoss:
    """The mean loss of one sealed chunk under one condition, nats per token."""

    text: str
    """`domain` or `retention`."""
    condition: str
    chunk: int
    loss: float


@dataclass(frozen=True)
class _Loss:
    loss: float


@torch.no_grad()
def chunk_losses(
    host: "Host",
    chunks_NT: Tensor,
    *,
    unfinished: Unfinished | None = None,
    part: str = "",
    progress: Progress = silent,
) -> Floats:
    """Mean loss (N) of chunks of token ids (N, T), int64, of all tokens but the first, by whole passes.

    Those that an interrupted evaluation kept as its `part` are not computed again. `progress` counts chunks.
    """

    def losses(rows: range) -> list[_Loss]:
        ids_nT = chunks_NT[rows.start : rows.stop].to(host.device)
        logits_nTV = host.model(input_ids=ids_nT, use_cache=False).logits
        pairs = zip(logits_nTV, ids_nT, strict=True)
        return [_Loss(float(F.cross_entropy(logits[:-1].float(), ids[1:]))) for logits, ids in pairs]

    kept = unfinished or Unfinished()
    found = kept.rows(part, _Loss, len(chunks_NT), losses, each=_ROWS, progress=progress)
    return np.array([one.loss for one in found])


def compared(
    losses: Mapping[str, Floats], params: SealedParams, *, sign: int, seed: int
) -> dict[str, dict[str, float]]:
    """Each condition against `host` on the same N chunks: mean change, interval and z over chunks.

    `sign` -1 makes a lower loss a gain, +1 a higher one a drift. Chunks are resampled as pairs.
    """
    names = [name for name in losses if name != "host"]
    change_NK = np.stack([sign * (losses[name] - losses["host"]) for name in names], axis=1)
    return {name: _ranged(change_NK[:, [place]], params, seed) for place, name in enumerate(names)}


def against(
    losses: Mapping[str, Floats], params: SealedParams, one: str, others: Sequence[str], *, seed: int
) -> dict[str, dict[str, float]]:
    """How much lower the loss is under `one` than under each other, paired by chunk."""
    return {other: _ranged((losses[other] - losses[one])[:, None], params, seed) for other in others}


def anatomy(layers: Sequence[int], alphas: Sequence[float], norms: Sequence[float]) -> dict[str, Any]:
    """Alpha and the norm of D by layer, and the median alpha of late layers over that of early ones.

    Late are the upper half of the shadowed layers, early the lower; a middle one is neither (ANNEAL).
    """
    half = len(layers) // 2
    early, late = np.median(alphas[:half] or [0.0]), np.median(alphas[len(layers) - half :] or [0.0])
    rows = [
        {"layer": int(layer), "alpha": float(alpha), "norm": float(norm)}
        for layer, alpha, norm in zip(layers, alphas, norms, strict=True)
    ]
    return {"layers": rows, "late_to_early": float(late / early) if early > 0 else None}


def _ranged(change_N1: Floats, params: SealedParams, seed: int) -> dict[str, float]:
    """Mean, percentile interval, and z = mean / standard error."""
    count = len(change_N1)
    draws = np.random.default_rng(seed)
    means = resampled_means(change_N1, np.arange(count), resamples=params.resamples, generator=draws)
    found = interval(float(change_N1.mean()), means[:, 0], params.confidence)
    error = float(change_N1.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    z = found.value / error if error > 0 else 0.0
    return {"value": found.value, "low": found.low, "high": found.high, "z": z}
