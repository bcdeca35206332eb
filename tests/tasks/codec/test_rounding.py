"""Stored number formats."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.codec import CellDtype, as_stored, dequantise, quantise, stored_bytes

SEEDS = st.integers(0, 2**31)


def cells(seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(5, 16, generator=torch.Generator().manual_seed(seed)) * scale


@settings(deadline=None)
@given(SEEDS, st.floats(1e-6, 1e6))
def test_int8_is_off_by_at_most_half_a_step_of_its_cell(seed: int, scale: float) -> None:
    cells_NC = cells(seed, scale)

    stored_NC, scale_N = quantise(cells_NC, "int8")

    assert scale_N is not None
    assert stored_NC.dtype == torch.int8
    error_NC = (dequantise(stored_NC, scale_N) - cells_NC).abs()
    assert (error_NC <= scale_N.unsqueeze(1) * 0.5001).all()


@settings(deadline=None)
@given(SEEDS, st.floats(1e-6, 1e6))
def test_int4_packs_two_numbers_into_a_byte_and_is_off_by_at_most_half_a_step(
    seed: int, scale: float
) -> None:
    cells_NC = cells(seed, scale)

    stored_NC, scale_N = quantise(cells_NC, "int4")

    assert scale_N is not None
    assert (stored_NC.dtype, stored_NC.shape) == (torch.uint8, (5, 8))
    error_NC = (dequantise(stored_NC, scale_N) - cells_NC).abs()
    assert (error_NC <= scale_N.unsqueeze(1) * 0.5001).all()
    assert (scale_N * 7 >= cells_NC.abs().amax(1) * 0.999).all()


def test_int4_cells_of_an_odd_width_are_refused() -> None:
    with pytest.raises(ValueError, match="even width, got 5"):
        quantise(torch.zeros(2, 5), "int4")


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_a_cell_of_zeros_survives(dtype: CellDtype) -> None:
    assert torch.equal(dequantise(*quantise(torch.zeros(2, 4), dtype)), torch.zeros(2, 4))


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "int4"])
def test_rounding_gives_the_stored_value_and_lets_the_gradient_through(dtype: CellDtype) -> None:
    cells_NC = cells(4).requires_grad_()

    rounded_NC = as_stored(cells_NC, dtype)
    rounded_NC.square().sum().backward()

    assert torch.equal(rounded_NC, dequantise(*quantise(cells_NC.detach(), dtype)))
    assert cells_NC.grad is not None
    torch.testing.assert_close(cells_NC.grad, 2 * rounded_NC.detach())


def test_a_bfloat16_cell_of_the_source_text_takes_1536_bytes() -> None:
    assert stored_bytes(768, "bfloat16") == 1536
    assert stored_bytes(768, "int8") == 772
    assert stored_bytes(768, "int4") == 388
