"""Losses of passages under many alphas at once: what a search of alpha is made of.

Alphas are rows of one batch, so W x and D x are each one product for all of them; D x is scaled by row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tasks.anneal.suffix import Suffix
from tasks.errors import TooLittleText, UnfitHost
from tasks.shadows import Shadow, attached, down_projections

if TYPE_CHECKING:
    from tasks.hosts import Host

Floats = NDArray[np.float64]
_TOKENS = 2_048
"""Tokens of a physical batch: larger ones are slower on a processor, and take memory."""
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}
"""Nats by which a passage's loss may differ from that of the host with the shadow attached."""


def passages(tokens_T: Tensor, count: int, length: int) -> Tensor:
    """`count` passages of `length` token ids, evenly spread over a text: (N, T), int64.

    A text too short for so many gives as many as fit side by side; raises `TooLittleText` when none does.
    """
    fitting = min(count, len(tokens_T) // length)
    if fitting == 0:
        raise TooLittleText(
            f"held-out text of {len(tokens_T):,} tokens has no passage of {length}; hold out more, or "
            "shorten anneal.passage_tokens"
        )
    starts = np.linspace(0, len(tokens_T) - length, fitting).astype(int)
    return torch.stack([tokens_T[start : start + length] for start in starts])


class Population:
    """Scores alphas of one shadow on N passages of T tokens (ids, int64), the last `scored` of each.

    Nothing may be attached to the host while it is used. In bfloat16 the products D x are made in bfloat16
    too, as those of W are; sums are float32.

    Raises `UnfitHost` when the host computes a passage differently in parts than whole.
    """

    def __init__(
        self, host: "Host", shadow: Shadow, ids_NT: Tensor, *, scored: int, tokens: int = _TOKENS
    ) -> None:
        self._host = host
        self._shadow = shadow
        self._modules = list(down_projections(host, shadow.layers).values())
        self._deltas = [delta.to(host.dtype) for delta in shadow.deltas]
        self._targets_NS = ids_NT[:, -scored:].to(host.device)
        self._rows = max(1, tokens // ids_NT.shape[1])
        self._suffix = Suffix(host, shadow.layers[0], ids_NT[:1])
        self._hidden_NTD = torch.cat([self._suffix.inputs(part) for part in torch.split(ids_NT, self._rows)])
        self._alphas_rL = torch.empty(0)
        self._check(ids_NT[:1])

    def __len__(self) -> int:
        return len(self._targets_NS)

    def losses(self, alphas_PL: Floats) -> Floats:
        """The mean loss of each passage under each row of alphas: (P, N), nats per scored token."""
        count, passages_ = len(alphas_PL), len(self)
        alphas = torch.from_numpy(np.ascontiguousarray(alphas_PL, dtype=np.float32)).to(self._host.device)
        pairs = torch.arange(count * passages_, device=self._host.device)
        found = []
        with self._scaling():
            for rows in torch.split(pairs, self._rows):
                self._alphas_rL = alphas[rows // passages_]
                place = rows % passages_
                found.append(self._suffix.losses(self._hidden_NTD[place], self._targets_NS[place]))
        return torch.cat(found).view(count, passages_).double().cpu().numpy()

    @contextmanager
    def _scaling(self) -> Iterator[None]:
        handles = [
            module.register_forward_hook(self._adding(number)) for number, module in enumerate(self._modules)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _adding(self, number: int) -> Any:
        delta = self._deltas[number]

        def add(_: Any, given: tuple[Tensor, ...], product_rTD: Tensor) -> Tensor:
            scale_r = self._alphas_rL[:, number]
            if not bool(scale_r.any()):
                return product_rTD
            added_rTD = F.linear(given[0], delta).float()
            return torch.addcmul(product_rTD.float(), added_rTD, scale_r[:, None, None]).to(product_rTD.dtype)

        return add

    def _check(self, ids_1T: Tensor) -> None:
        """Two alphas on one passage, in parts and whole."""
        count = len(self._shadow.layers)
        alphas_PL = np.stack([np.zeros(count), np.linspace(0.2, 1.0, count)])
        kept, self._hidden_NTD, self._targets_NS = (
            (self._hidden_NTD, self._targets_NS),
            self._hidden_NTD[:1],
            self._targets_NS[:1],
        )
        found_P1 = self.losses(alphas_PL)
        self._hidden_NTD, self._targets_NS = kept
        scored = self._targets_NS.shape[1]
        whole_P1 = np.array([plain_losses(self._host, self._shadow, alphas_PL, ids_1T, scored=scored)])
        worst = float(np.abs(found_P1 - whole_P1.reshape(found_P1.shape)).max())
        if not worst <= _TOLERANCE[self._host.dtype]:
            raise UnfitHost(
                f"{self._host.ref.name} computes a passage in parts {worst:.2g} nats away from the whole; "
                "its architecture is not known here, use another host"
            )


def plain_losses(host: "Host", shadow: Shadow, alphas_PL: Floats, ids_NT: Tensor, *, scored: int) -> Floats:
    """What `Population.losses` gives, one alpha and one passage at a time, by whole forward passes."""
    found = np.empty((len(alphas_PL), len(ids_NT)))
    for row, alphas in enumerate(alphas_PL):
        with torch.no_grad(), attached(host, shadow.scaled(alphas.tolist())):
            for place, ids_T in enumerate(ids_NT.to(host.device)):
                logits_TV = host.model(input_ids=ids_T[None], use_cache=False).logits[0]
                targets_S = ids_T[-scored:]
                loss = F.cross_entropy(logits_TV[-1 - scored : -1].float(), targets_S)
                found[row, place] = float(loss)
    return found
