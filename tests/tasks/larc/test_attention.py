"""Attention with a backward pass in float32: the same forward pass, nearer gradients, nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tasks.larc.attention import WideBackward
from tests.tasks.larc.conftest import close

SHAPE = (2, 3, 11, 16)


def inputs(dtype: torch.dtype) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(4)
    given = [torch.randn(SHAPE, generator=generator).to(dtype).requires_grad_() for _ in range(3)]
    mask = torch.zeros(2, 1, 11, 11, dtype=dtype)
    mask.masked_fill_(~torch.ones(11, 11).tril().bool(), torch.finfo(dtype).min)
    return given, mask


def attend(given: list[Tensor], mask: Tensor | None, **options: Any) -> tuple[Tensor, list[Tensor]]:
    out = scaled_dot_product_attention(*given, attn_mask=mask, dropout_p=0.0, is_causal=False, **options)
    weights = torch.arange(out.numel(), dtype=torch.float64).cos().view(SHAPE).to(out.dtype)
    return out.detach(), [one.detach() for one in torch.autograd.grad(out, given, weights)]


@pytest.mark.parametrize("scale", [None, 0.3])
def test_bfloat16_has_the_same_output_and_nearer_gradients(scale: float | None) -> None:
    given, mask = inputs(torch.bfloat16)
    exact = [one.detach().double().requires_grad_() for one in given]
    _, expected = attend(exact, mask.double(), scale=scale)
    plain, by_plain = attend(given, mask, scale=scale)
    with WideBackward():
        wide, by_wide = attend(given, mask, scale=scale)
    assert torch.equal(wide, plain)
    apart = [
        max(float((one.double() - other).abs().max()) for one, other in zip(found, expected, strict=True))
        for found in (by_wide, by_plain)
    ]
    assert apart[0] <= apart[1]
    assert apart[0] < 0.02


def test_other_dtypes_and_calls_are_left_as_they_are() -> None:
    for dtype, masked in ((torch.float32, True), (torch.bfloat16, False)):
        given, mask = inputs(dtype)
        plain = attend(given, mask if masked else None)
        with WideBackward():
            inside = attend(given, mask if masked else None)
        assert torch.equal(plain[0], inside[0])
        assert all(torch.equal(one, other) for one, other in zip(plain[1], inside[1], strict=True))


def test_what_a_token_does_not_see_changes_none_of_its_bits() -> None:
    given, mask = inputs(torch.bfloat16)
    changed = [given[0], *(one.detach().clone() for one in given[1:])]
    for one in changed[1:]:
        one[:, :, -1] = 9.0
    with WideBackward():
        first, _ = attend(given, mask)
        second, _ = attend([one.requires_grad_() for one in changed], mask)
    assert torch.equal(first[:, :, :-1], second[:, :, :-1])
    assert not close(first[:, :, -1].float(), second[:, :, -1].float())
