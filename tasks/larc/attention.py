"""Attention whose backward pass on a processor does not compute in bfloat16, where it is slow.

The forward pass is torch's own, to the last bit; its backward kernel for bfloat16 takes two to three times as
long as the one for float32 (150 places, nine heads), and rounds more.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

_FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None) -> Tensor:
        out, logsumexp = _FORWARD(q, k, v, 0.0, False, attn_mask=mask, scale=scale)
        ctx.save_for_backward(q, k, v, mask, out, logsumexp)
        ctx.scale = scale
        assert isinstance(out, Tensor)
        return out

    @staticmethod
    def backward(ctx: Any, by_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask, out, logsumexp = ctx.saved_tensors
        wide = [one.float() for one in (by_out, q, k, v, out)]
        given = _BACKWARD(*wide, logsumexp, 0.0, False, attn_mask=mask.float(), scale=ctx.scale)
        by_q, by_k, by_v = (one.to(q.dtype) for one in given)
        return by_q, by_k, by_v, None, None


_apply: Callable[..., Tensor] = _Attention.apply


class WideBackward(TorchFunctionMode):
    """While it is active, attention in bfloat16 on a processor has its gradients computed in float32."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func is scaled_dot_product_attention and len(args) == 3:
            q, k, v = args
            mask, scale = given.get("attn_mask"), given.get("scale")
            plain = given.keys() <= {"attn_mask", "scale", "dropout_p", "is_causal"}
            plain &= not given.get("dropout_p") and not given.get("is_causal")
            fits = q.device.type == "cpu" and q.dtype == torch.bfloat16 and q.shape == k.shape == v.shape
            if plain and fits and mask is not None and mask.dtype == q.dtype:
                return _apply(q, k, v, mask, scale)
        return func(*args, **given)
