"""Decoder layers with a shadow at work in them, at another alpha in every row.

`HostLayer` calls any host's own layer. `LeanLayer` does the arithmetic of the commonest kind itself, and less
of it: passes over memory are fewer, and what alpha cannot change, or no loss reads, is not computed again.
Shadows that are attached to the host are at work in both.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
_HEAD_NORMS = {"q_norm", "k_norm"}
_IN_CACHE = 128 * 1024
"""Numbers that are normed together on a processor, half a mebibyte in float32."""
_CHILDREN = {
    "": {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    "mlp": {"gate_proj", "up_proj", "down_proj", "act_fn"},
}


def with_delta(product_rTD: Tensor, added_rTD: Tensor, alphas_r: Tensor) -> Tensor:
    """W x + alpha D x of every row, summed in float32 and rounded once, to the dtype of W x."""
    sum_rTD = torch.addcmul(product_rTD.float(), added_rTD.float(), alphas_r[:, None, None])
    return sum_rTD.to(product_rTD.dtype)


def places_before(scored: int) -> slice:
    """The places of a row that predict its last `scored` tokens."""
    return slice(-1 - scored, -1)


class HostLayer:
    """The host's own layer, called with what the host hands it; `delta` (D, inner) in the host's dtype."""

    def __init__(self, layer: nn.Module, given: dict[str, Any], delta: Tensor | None) -> None:
        self._layer = layer
        self._given = given
        self._delta = delta

    def keep(self, hidden_NTD: Tensor) -> Tensor:
        """What `begin` needs of passages, computed once: (N, 1, T, D)."""
        return hidden_NTD[:, None]

    def begin(self, kept_r1TD: Tensor, alphas_r: Tensor | None) -> Tensor:
        """The output (r, T, D) for rows of what was kept."""
        return self(kept_r1TD[:, 0], alphas_r)

    def __call__(self, hidden_rTD: Tensor, alphas_r: Tensor | None, scored: int | None = None) -> Tensor:
        """The output (r, T, D), D at work at alphas (r) unless these are None.

        With `scored` S only the places that predict the last S tokens: (r, S, D).
        """
        if self._delta is None or alphas_r is None:
            made = self._layer(hidden_rTD, **self._given)
        else:
            made = self._shadowed(hidden_rTD, alphas_r, self._delta)
        output_rTD: Tensor = made[0] if isinstance(made, tuple) else made
        return output_rTD if scored is None else output_rTD[:, places_before(scored)]

    def _shadowed(self, hidden_rTD: Tensor, alphas_r: Tensor, delta: Tensor) -> Any:
        def add(_: Any, given: tuple[Tensor, ...], product_rTD: Tensor) -> Tensor:
            return with_delta(product_rTD, F.linear(given[0], delta), alphas_r)

        mlp: Any = self._layer.mlp
        handle = mlp.down_proj.register_forward_hook(add)
        try:
            return self._layer(hidden_rTD, **self._given)
        finally:
            handle.remove()


class LeanLayer:
    """A layer of pre-normed causal attention with rotary positions and a gated MLP: Llama's, Qwen's."""

    def __init__(self, layer: nn.Module, given: dict[str, Any], delta: Tensor | None) -> None:
        known: Any = layer
        self._attention, self._mlp = known.self_attn, known.mlp
        self._first_norm, self._second_norm = known.input_layernorm, known.post_attention_layernorm
        self._cos_T1d, self._sin_T1d = (part[0][:, None] for part in given["position_embeddings"])
        self._delta = delta

    @staticmethod
    def fits(layer: nn.Module, given: dict[str, Any]) -> bool:
        """Whether a layer has the parts of this kind and is handed what it takes.

        That it computes the same is not known yet.
        """
        rotary = given.get("position_embeddings")
        if given.get("attention_mask") is not None or not isinstance(rotary, tuple) or len(rotary) != 2:
            return False
        if any(_children(layer, name) != children for name, children in _CHILDREN.items()):
            return False
        attention: Any = layer.get_submodule("self_attn")
        width = getattr(attention, "head_dim", None)
        return (
            _children(layer, "self_attn") - _HEAD_NORMS == _ATTENTION
            and hasattr(attention, "scaling")
            and all(_is_mean_square(norm) for norm in _norms(layer))
            and all(part.shape[-1] == width and part.shape[0] == 1 for part in rotary)
        )

    def keep(self, hidden_NTD: Tensor) -> Tensor:
        """The residual, W x and D x of passages, whatever alpha is: (N, 3, T, D)."""
        residual_NTD, inner_NTI = self._before_down(hidden_NTD, None)
        product_NTD = self._mlp.down_proj(inner_NTI)
        added_NTD = torch.zeros_like(product_NTD) if self._delta is None else F.linear(inner_NTI, self._delta)
        return torch.stack((residual_NTD, product_NTD, added_NTD), dim=1)

    def begin(self, kept_r3TD: Tensor, alphas_r: Tensor | None) -> Tensor:
        """The output (r, T, D) for rows of what was kept."""
        residual_rTD, product_rTD, added_rTD = kept_r3TD.unbind(1)
        return residual_rTD + (
            product_rTD if alphas_r is None else with_delta(product_rTD, added_rTD, alphas_r)
        )

    def __call__(self, hidden_rTD: Tensor, alphas_r: Tensor | None, scored: int | None = None) -> Tensor:
        """As of `HostLayer`; with `scored` the other places are only attended to."""
        residual_rSD, inner_rSI = self._before_down(hidden_rTD, scored)
        product_rSD = self._mlp.down_proj(inner_rSI)
        if self._delta is not None and alphas_r is not None:
            product_rSD = with_delta(product_rSD, F.linear(inner_rSI, self._delta), alphas_r)
        return residual_rSD.add_(product_rSD)

    def _before_down(self, hidden_rTD: Tensor, scored: int | None) -> tuple[Tensor, Tensor]:
        """The residual after attention (r, S, D), and what enters `down_proj` (r, S, inner)."""
        places = slice(None) if scored is None else places_before(scored)
        normed_rTD = _normed(self._first_norm, hidden_rTD)
        residual_rSD = self._attended(normed_rTD, places).add_(hidden_rTD[:, places])
        normed_rSD = _normed(self._second_norm, residual_rSD)
        gate_rSI = self._mlp.act_fn(self._mlp.gate_proj(normed_rSD))
        return residual_rSD, gate_rSI.mul_(self._mlp.up_proj(normed_rSD))

    def _attended(self, normed_rTD: Tensor, places: slice) -> Tensor:
        attention = self._attention
        queries_rSHd = self._rotated(attention.q_proj(normed_rTD[:, places]), "q_norm", places)
        keys_rTKd = self._rotated(attention.k_proj(normed_rTD), "k_norm", slice(None))
        values_rTKd = self._heads(attention.v_proj(normed_rTD))
        whole = queries_rSHd.shape[1] == keys_rTKd.shape[1]
        read_rHSd = F.scaled_dot_product_attention(
            queries_rSHd.transpose(1, 2),
            keys_rTKd.transpose(1, 2),
            values_rTKd.transpose(1, 2),
            attn_mask=None if whole else _causal(normed_rTD.shape[1], places, normed_rTD.device),
            is_causal=whole,
            scale=attention.scaling,
            enable_gqa=True,
        )
        read_rSD: Tensor = attention.o_proj(read_rHSd.transpose(1, 2).flatten(2))
        return read_rSD

    def _heads(self, projected_rSD: Tensor) -> Tensor:
        return projected_rSD.view(*projected_rSD.shape[:-1], -1, self._attention.head_dim)

    def _rotated(self, projected_rSD: Tensor, norm: str, places: slice) -> Tensor:
        """Heads (r, S, H, d) turned by their positions: x cos + (-x_high, x_low) sin."""
        x_rSHd = self._heads(projected_rSD)
        if hasattr(self._attention, norm):
            x_rSHd = _normed(getattr(self._attention, norm), x_rSHd)
        half = x_rSHd.shape[-1] // 2
        cos_S1d, sin_S1d = self._cos_T1d[places], self._sin_T1d[places]
        made_rSHd: Tensor = x_rSHd * cos_S1d
        made_rSHd[..., :half].addcmul_(x_rSHd[..., half:], sin_S1d[..., :half], value=-1)
        made_rSHd[..., half:].addcmul_(x_rSHd[..., :half], sin_S1d[..., half:])
        return made_rSHd


def _norms(layer: nn.Module) -> list[Any]:
    of_layer, of_heads = ("input_layernorm", "post_attention_layernorm"), sorted(_HEAD_NORMS)
    heads = [child for name, child in layer.get_submodule("self_attn").named_children() if name in of_heads]
    return [*(layer.get_submodule(name) for name in of_layer), *heads]


def _is_mean_square(norm: Any) -> bool:
    """Whether a norm has what `_normed` reads; Gemma's and OLMo's have the same names and other parts."""
    weight = getattr(norm, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 1 and hasattr(norm, "variance_epsilon")


def _normed(norm: Any, x: Tensor) -> Tensor:
    """x over the root of its mean square, in float32, then times the norm's weight, in the dtype of x.

    On a processor a few rows at a time: what is made of them on the way stays in its cache.
    """
    width = x.shape[-1]
    flat_nD = x.reshape(-1, width)
    made_nD = torch.empty_like(flat_nD)
    rows = max(1, _IN_CACHE // width) if x.device.type == "cpu" else max(1, len(flat_nD))
    for part_pD, out_pD in zip(torch.split(flat_nD, rows), torch.split(made_nD, rows), strict=True):
        wide_pD = part_pD.float()
        size_p1 = torch.linalg.vector_norm(wide_pD, dim=-1, keepdim=True)
        scale_p1 = size_p1.square_().div_(width).add_(norm.variance_epsilon).rsqrt_()
        out_pD.copy_(wide_pD * scale_p1).mul_(norm.weight)
    made: Tensor = made_nD.view(x.shape)
    return made


def _causal(tokens: int, places: slice, device: torch.device) -> Tensor:
    """Which of T places each of those places attends to: (S, T), bool."""
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()[places]


def _children(layer: nn.Module, name: str) -> set[str]:
    found = dict(layer.named_modules()).get(name)
    return set() if found is None else {child for child, _ in found.named_children()}
