"""The part of a host that a shadow can change: from its first shadowed layer on, for many rows at once.

What lies below is the same for every alpha, so its output is computed once and kept (ANNEAL).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tasks.errors import UnfitHost

if TYPE_CHECKING:
    from tasks.hosts import Host

_SCORED_AT_ONCE = 512
"""Places whose logits are held at the same time: a large vocabulary fills memory otherwise."""


class _Captured(Exception):
    """Ends a forward pass at the layer whose input was wanted."""


class Suffix:
    """Layers `first` and above of a host, its last norm and its head, for rows of one length T.

    Every layer is called with what the host itself hands it (masks, positions), recorded once on one row.
    """

    def __init__(self, host: "Host", first: int, ids_1T: Tensor) -> None:
        model: Any = host.model
        self._host = host
        self._decoder = model.get_decoder()
        self._head = model.get_output_embeddings()
        self._cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
        self.first = first
        if not hasattr(self._decoder, "norm"):
            raise UnfitHost(f"{host.ref.name} has no last norm that is known here; use another host")
        self._layers = list(self._decoder.layers)[first:]
        self._given = self._record(ids_1T.to(host.device))

    @torch.no_grad()
    def inputs(self, ids_NT: Tensor) -> Tensor:
        """What enters layer `first` for token ids (N, T), int64: (N, T, D) in the host's dtype."""
        caught: list[Tensor] = []

        def catch(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            caught.append((args[0] if args else kwargs["hidden_states"]).detach().clone())
            raise _Captured

        handle = self._layers[0].register_forward_pre_hook(catch, with_kwargs=True)
        try:
            self._decoder(input_ids=ids_NT.to(self._host.device), use_cache=False)
        except _Captured:
            pass
        finally:
            handle.remove()
        return caught[0]

    @torch.no_grad()
    def losses(self, hidden_rTD: Tensor, targets_rS: Tensor) -> Tensor:
        """Mean loss of the last S tokens of each row, (r), float32, nats; hooks on the layers are at work.

        `targets_rS` are the ids of those tokens: row r's place T - 1 - S + s predicts `targets_rS[r, s]`.
        """
        for layer, given in zip(self._layers, self._given, strict=True):
            made = layer(hidden_rTD, **given)
            hidden_rTD = made[0] if isinstance(made, tuple) else made
        scored = targets_rS.shape[1]
        places_PD = self._decoder.norm(hidden_rTD[:, -1 - scored : -1]).flatten(0, 1)
        targets_P = targets_rS.flatten()
        parts = [
            F.cross_entropy(self._logits(places_pD), targets_p, reduction="none")
            for places_pD, targets_p in zip(
                torch.split(places_PD, _SCORED_AT_ONCE), torch.split(targets_P, _SCORED_AT_ONCE), strict=True
            )
        ]
        return torch.cat(parts).view(targets_rS.shape).mean(-1)

    def _logits(self, places_pD: Tensor) -> Tensor:
        logits_pV: Tensor = self._head(places_pD)
        if self._cap:
            logits_pV = torch.tanh(logits_pV / self._cap) * self._cap
        return logits_pV.float()

    @torch.no_grad()
    def _record(self, ids_1T: Tensor) -> list[dict[str, Any]]:
        given: list[dict[str, Any]] = []
        with _recording(self._layers, given):
            self._decoder(input_ids=ids_1T, use_cache=False)
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
