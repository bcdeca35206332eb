"""Losses of passages under many alphas at once: what a search of alpha is made of.

Alphas are rows of one batch, so W x and D x are each one product for all of them; D x is scaled by row.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tasks.anneal.suffix import Suffix
from tasks.errors import TooLittleText, UnfitHost
from tasks.shadows import Shadow, attached

if TYPE_CHECKING:
    from tasks.hosts import Host

Floats = NDArray[np.float64]
_TOKENS = 2_048
"""Tokens of a physical batch: larger ones are slower on a processor, and take memory."""
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}
"""Nats by which a passage's loss may differ from that of the host with the shadow attached."""


def passages(tokens_T: Tensor, count: int, length: int, *, setting: str = "anneal.passage_tokens") -> Tensor:
    """`count` passages of `length` token ids, evenly spread over a text: (N, T), int64.

    A text too short for so many gives as many as fit side by side; raises `TooLittleText` when none does,
    which names the `setting` that `length` is.
    """
    fitting = min(count, len(tokens_T) // length)
    if fitting == 0:
        raise TooLittleText(
            f"held-out text of {len(tokens_T):,} tokens has no passage of {length}; hold out more, or "
            f"shorten {setting}"
        )
    starts = np.linspace(0, len(tokens_T) - length, fitting).astype(int)
    return torch.stack([tokens_T[start : start + length] for start in starts])


class Population:
    """Scores alphas of one shadow on N passages of T tokens (ids, int64), the last `scored` of each.

    In bfloat16 the products D x are made in bfloat16 too, as those of W are; sums are float32. Shadows that
    are attached to the host are at work all the while.

    Raises `UnfitHost` when the host computes a passage differently in parts than whole.
    """

    def __init__(
        self, host: "Host", shadow: Shadow, ids_NT: Tensor, *, scored: int, tokens: int = _TOKENS
    ) -> None:
        self._host = host
        self._targets_NS = ids_NT[:, -scored:].to(host.device)
        self._rows = max(1, tokens // ids_NT.shape[1])
        self._suffix = _checked_suffix(host, shadow, ids_NT[:1], scored)
        self._kept_NPTD = torch.cat([self._suffix.keep(part) for part in torch.split(ids_NT, self._rows)])

    def __len__(self) -> int:
        return len(self._targets_NS)

    def losses(self, alphas_PL: Floats) -> Floats:
        """The mean loss of each passage under each row of alphas: (P, N), nats per scored token."""
        count, passages_ = len(alphas_PL), len(self)
        alphas = torch.from_numpy(np.ascontiguousarray(alphas_PL, dtype=np.float32)).to(self._host.device)
        pairs = torch.arange(count * passages_, device=self._host.device)
        found = []
        for rows in torch.split(pairs, self._rows):
            place = rows % passages_
            alphas_rL = alphas[rows // passages_]
            found.append(self._suffix.losses(self._kept_NPTD[place], alphas_rL, self._targets_NS[place]))
        return torch.cat(found).view(count, passages_).double().cpu().numpy()


def _checked_suffix(host: "Host", shadow: Shadow, ids_1T: Tensor, scored: int) -> Suffix:
    """The leanest suffix that gives two alphas on one passage the losses of the whole host."""
    count = len(shadow.layers)
    alphas_2L = np.stack([np.zeros(count), np.linspace(0.2, 1.0, count)])
    alphas = torch.from_numpy(alphas_2L).float().to(host.device)
    targets_2S = ids_1T[:, -scored:].repeat(2, 1).to(host.device)
    suffixes = [Suffix(host, shadow, ids_1T, lean=lean) for lean in (True, False)]
    whole_2 = plain_losses(host, shadow, alphas_2L, ids_1T, scored=scored)[:, 0]
    for suffix in suffixes:
        found_2 = suffix.losses(suffix.keep(ids_1T).repeat(2, 1, 1, 1), alphas, targets_2S)
        worst = float(np.abs(found_2.double().cpu().numpy() - whole_2).max())
        if worst <= _TOLERANCE[host.dtype]:
            return suffix
    raise UnfitHost(
        f"{host.ref.name} computes a passage in parts {worst:.2g} nats away from the whole; "
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
