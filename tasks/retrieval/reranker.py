"""The shared reranker: a small network over an alignment's features, with their standardisation inside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tasks.errors import BadPayload
from tasks.payload import pack_tensors, unpack_tensors
from tasks.progress import Progress, silent
from tasks.retrieval.arrays import check_finite, part, reading
from tasks.retrieval.features import FEATURES
from tasks.retrieval.params import RerankerParams, SearchParams

_WHAT = "reranker"
# Log odds are compared after rounding: equal evidence must tie, whatever the batch it was scored in.
_LOGIT_DECIMALS = 6
_LEAST_SCALE = 1e-3


@dataclass(frozen=True)
class Examples:
    """The K closest alignments of Q cues: features_QKF (float64), right_QK and present_QK (bool)."""

    features_QKF: np.ndarray
    right_QK: np.ndarray
    present_QK: np.ndarray


@dataclass(frozen=True)
class Reranker:
    """Feature means and scales (F,) and the layers of a one-hidden-layer network, all float32, with the
    bounds on a search under which they were fitted and hold."""

    search: SearchParams
    mean_F: np.ndarray
    scale_F: np.ndarray
    hidden_FH: np.ndarray
    hidden_bias_H: np.ndarray
    out_H: np.ndarray
    out_bias: np.ndarray

    def __call__(self, features_AF: np.ndarray) -> np.ndarray:
        """Log odds (float64, nats, rounded) that each alignment is the right one."""
        standard_AF = (features_AF - self.mean_F) / self.scale_F
        hidden_AH = np.tanh(standard_AF @ self.hidden_FH.astype(np.float64) + self.hidden_bias_H)
        logit_A: np.ndarray = hidden_AH @ self.out_H.astype(np.float64) + self.out_bias[0]
        return np.round(logit_A, _LOGIT_DECIMALS)

    def to_bytes(self) -> bytes:
        """Safetensors payload; the names of the features and the search bounds travel with it."""
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in _TENSORS}
        record = {"features": list(FEATURES), "search": self.search.model_dump(mode="json")}
        return pack_tensors(tensors, what=_WHAT, record=record)

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Reranker":
        """Raises BadPayload where the payload is no reranker, or one over other features."""
        tensors, record = unpack_tensors(payload, what=_WHAT)
        if record.get("features") != list(FEATURES):
            raise BadPayload(
                f"the reranker reads features {record.get('features')}, not {list(FEATURES)}; train it again"
            )
        if missing := [name for name in _TENSORS if name not in tensors]:
            raise BadPayload(f"the reranker lacks {', '.join(missing)}; train it again")
        with reading(_WHAT):
            search = SearchParams.model_validate(record["search"])
            parts = {name: tensors[name].numpy() for name in _TENSORS}
            width = len(part(parts, "hidden_bias_H", np.float32, None))
            shapes = {
                "mean_F": (len(FEATURES),),
                "scale_F": (len(FEATURES),),
                "hidden_FH": (len(FEATURES), width),
                "hidden_bias_H": (width,),
                "out_H": (width,),
                "out_bias": (1,),
            }
            for name, shape in shapes.items():
                check_finite(part(parts, name, np.float32, *shape), name)
            if (parts["scale_F"] <= 0).any():
                raise ValueError("a feature has no positive scale")
        return cls(search, **parts)


_TENSORS = tuple(name for name in Reranker.__dataclass_fields__ if name != "search")


def train(
    examples: Examples, params: RerankerParams, search: SearchParams, progress: Progress = silent
) -> Reranker:
    """Fit the reranker by full-batch AdamW.

    The loss is the sum of two: the log share that a softmax over a cue's alignments gives to its right ones
    (what orders them), and the binary cross-entropy of each alignment (what makes a score a probability).
    One thread and a seeded start make the bits a function of the inputs.
    """
    generator = torch.Generator().manual_seed(params.seed)
    present_QK = torch.from_numpy(examples.present_QK)
    right_QK = torch.from_numpy(examples.right_QK)
    answerable_Q = right_QK.any(1)
    mean_F = examples.features_QKF[examples.present_QK].mean(0)
    scale_F = np.maximum(examples.features_QKF[examples.present_QK].std(0), _LEAST_SCALE)
    input_QKF = torch.from_numpy((examples.features_QKF - mean_F) / scale_F).float()
    width = input_QKF.shape[-1]
    hidden_FH = nn.Parameter(torch.randn(width, params.hidden, generator=generator) * width**-0.5)
    hidden_bias_H = nn.Parameter(torch.zeros(params.hidden))
    out_H = nn.Parameter(torch.randn(params.hidden, generator=generator) * params.hidden**-0.5)
    out_bias = nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW(
        [hidden_FH, hidden_bias_H, out_H, out_bias],
        lr=params.learning_rate,
        weight_decay=params.weight_decay,
    )
    with _one_thread():
        for step in range(params.steps):
            logit_QK = torch.tanh(input_QKF @ hidden_FH + hidden_bias_H) @ out_H + out_bias
            among_QK = logit_QK.masked_fill(~present_QK, -torch.inf)[answerable_Q]
            right_Q = among_QK.masked_fill(~right_QK[answerable_Q], -torch.inf).logsumexp(1)
            order_loss = (among_QK.logsumexp(1) - right_Q).sum() / answerable_Q.sum().clamp(min=1)
            odds_loss = F.binary_cross_entropy_with_logits(logit_QK[present_QK], right_QK[present_QK].float())
            loss = order_loss + odds_loss
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            progress(step + 1, params.steps, loss=float(loss.detach()))
    return Reranker(
        search=search,
        mean_F=mean_F.astype(np.float32),
        scale_F=scale_F.astype(np.float32),
        hidden_FH=hidden_FH.detach().numpy(),
        hidden_bias_H=hidden_bias_H.detach().numpy(),
        out_H=out_H.detach().numpy(),
        out_bias=out_bias.detach().numpy(),
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    # Sums split over threads round differently with their number.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
