"""The part of a host that a shadow can change: from its first shadowed layer on, for many rows at once.

What lies below is the same for every alpha, so its output is computed once and kept (ANNEAL).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tasks.anneal.layers import HostLayer, LeanLayer, places_before
from tasks.errors import UnfitHost
from tasks.shadows import Shadow

if TYPE_CHECKING:
    from tasks.hosts import Host

_MULTIPLIED, _IN_CACHE = 8 * 1024**2, 256 * 1024
"""Logits of one product, and those of them whose losses are taken together: what a core's cache holds."""


class _Captured(Exception):
    """Ends a forward pass at the layer whose input was wanted."""


class Suffix:
    """A host's layers from a shadow's first one on, its last norm and its head, for rows of one length T.

    Every layer is called with what the host itself hands it (masks, positions), recorded once on one row.
    With `lean` those of a known kind are `LeanLayer`.
    """

    def __init__(self, host: "Host", shadow: Shadow, ids_1T: Tensor, *, lean: bool) -> None:
        model: Any = host.model
        self._host = host
        self._decoder = model.get_decoder()
        self._head = model.get_output_embeddings()
        self._cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
        if not hasattr(self._decoder, "norm"):
            raise UnfitHost(f"{host.ref.name} has no last norm that is known here; use another host")
        first = shadow.layers[0]
        self._own = list(self._decoder.layers)[first:]
        deltas = {
            layer - first: delta.to(host.dtype)
            for layer, delta in zip(shadow.layers, shadow.deltas, strict=True)
        }
        self._columns = {layer - first: column for column, layer in enumerate(shadow.layers)}
        self._layers = [
            (LeanLayer if lean and LeanLayer.fits(own, given) else HostLayer)(own, given, deltas.get(place))
            for place, (own, given) in enumerate(zip(self._own, self._record(ids_1T), strict=True))
        ]

    @torch.no_grad()
    def keep(self, ids_NT: Tensor) -> Tensor:
        """What `losses` needs of passages (N, T), int64, whatever alpha is: (N, parts, T, D)."""
        return self._layers[0].keep(self._inputs(ids_NT))

    @torch.no_grad()
    def losses(self, kept_rPTD: Tensor, alphas_rL: Tensor, targets_rS: Tensor) -> Tensor:
        """Mean loss of the last S tokens of each row, (r), float32, nats.

        `targets_rS` are the ids of those tokens: row r's place T - 1 - S + s predicts `targets_rS[r, s]`.
        """
        scored, last = targets_rS.shape[1], len(self._layers) - 1
        hidden_rTD = self._layers[0].begin(kept_rPTD, self._alphas(alphas_rL, 0))
        for place in range(1, len(self._layers)):
            alphas_r = self._alphas(alphas_rL, place)
            hidden_rTD = self._layers[place](hidden_rTD, alphas_r, scored if place == last else None)
        hidden_rSD = hidden_rTD if last else hidden_rTD[:, places_before(scored)]
        return self._loss(self._decoder.norm(hidden_rSD), targets_rS)

    def _alphas(self, alphas_rL: Tensor, place: int) -> Tensor | None:
        """The alphas (r) of a layer; None where it has no shadow or none of the rows uses it."""
        column = self._columns.get(place)
        if column is None or not bool(alphas_rL[:, column].any()):
            return None
        return alphas_rL[:, column]

    def _loss(self, states_rSD: Tensor, targets_rS: Tensor) -> Tensor:
        states_PD, targets_P = states_rSD.flatten(0, 1), targets_rS.flatten()
        vocabulary = self._head.weight.shape[0]
        multiplied = max(1, _MULTIPLIED // vocabulary)
        in_cache = max(1, _IN_CACHE // vocabulary) if states_PD.device.type == "cpu" else multiplied
        parts = []
        for start in range(0, len(states_PD), multiplied):
            logits_pV = self._head(states_PD[start : start + multiplied])
            targets_p = targets_P[start : start + multiplied]
            pieces = torch.split(logits_pV, in_cache), torch.split(targets_p, in_cache)
            for logits_fV, targets_f in zip(*pieces, strict=True):
                parts.append(F.cross_entropy(self._capped(logits_fV), targets_f, reduction="none"))
        return torch.cat(parts).view(targets_rS.shape).mean(-1)

    def _capped(self, logits_pV: Tensor) -> Tensor:
        if self._cap:
            logits_pV = torch.tanh(logits_pV / self._cap) * self._cap
        return logits_pV.float()

    def _inputs(self, ids_NT: Tensor) -> Tensor:
        """What enters the first layer: (N, T, D) in the host's dtype."""
        caught: list[Tensor] = []

        def catch(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            caught.append((args[0] if args else kwargs["hidden_states"]).detach().clone())
            raise _Captured

        handle = self._own[0].register_forward_pre_hook(catch, with_kwargs=True)
        try:
            self._decoder(input_ids=ids_NT.to(self._host.device), use_cache=False)
        except _Captured:
            pass
        finally:
            handle.remove()
        return caught[0]

    @torch.no_grad()
    def _record(self, ids_1T: Tensor) -> list[dict[str, Any]]:
        given: list[dict[str, Any]] = []
        with _recording(self._own, given):
            self._decoder(input_ids=ids_1T.to(self._host.device), use_cache=False)
        return given


@contextmanager
def _recording(layers: list[Any], given: list[dict[str, Any]]) -> Iterator[None]:
    """Keep the keyword arguments of each layer, in order, while a host reads one row."""

    def record(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) > 1:
            raise UnfitHost("the host hands its layers more than a hidden state by place; use another host")
        given.append({name: value for name, value in kwargs.items() if name != "hidden_states"})

    handles = [layer.register_forward_pre_hook(record, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
