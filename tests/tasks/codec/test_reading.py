"""Reading cells back, and adapting them."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tasks.codec import CellAdam, Codec, blocks, read_cells, read_with_gradient, score_slots
from tasks.codec.adapt import _pulled_back
from tests.tasks.codec.conftest import VOCABULARY


@pytest.fixture
def batch(unseen: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens_NT, mask_NT = zip(*(blocks(ids, 8) for ids in unseen), strict=True)
    return torch.cat(tokens_NT)[:32], torch.cat(mask_NT)[:32]


def test_figures_and_gradient_are_those_of_the_full_cross_entropy(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    slots_NTS = codec.slots(codec.encode(tokens_NT)).detach().requires_grad_()

    reading, slope_NTS = score_slots(codec, slots_NTS.detach(), tokens_NT, mask_NT, gradient=True)

    logits_NTV = slots_NTS @ codec.head.weight.T
    loss_NT = F.cross_entropy(logits_NTV.flatten(0, 1), tokens_NT.flatten(), reduction="none").view(-1, 8)
    (expected,) = torch.autograd.grad(loss_NT[mask_NT].sum(), slots_NTS)
    torch.testing.assert_close(reading.loss_NT[mask_NT], loss_NT[mask_NT], atol=1e-5, rtol=1e-4)
    assert slope_NTS is not None
    torch.testing.assert_close(slope_NTS, expected, atol=1e-5, rtol=1e-4)
    assert torch.equal(reading.right_NT[mask_NT], (logits_NTV.argmax(-1) == tokens_NT)[mask_NT])


def test_padding_counts_as_right_without_loss_and_pulls_no_cell(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, _ = batch
    nothing_NT = torch.zeros_like(tokens_NT, dtype=torch.bool)

    reading, gradient_NC = read_with_gradient(
        codec, codec.encode(tokens_NT), tokens_NT, nothing_NT, "bfloat16"
    )

    assert reading.right_NT.all()
    assert not reading.loss_NT.any()
    assert not gradient_NC.any()


def test_local_adaptation_lowers_the_loss_and_leaves_the_codec_alone(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    before = codec.to_bytes()
    generator = torch.Generator().manual_seed(8)
    cells_NC = codec.encode(tokens_NT) + 0.8 * torch.randn(len(tokens_NT), 96, generator=generator)
    optimizer = CellAdam(cells_NC, rate=0.05)

    losses = []
    for _ in range(30):
        reading, gradient_NC = read_with_gradient(codec, cells_NC, tokens_NT, mask_NT, "bfloat16")
        losses.append(float(reading.loss_NT.sum()))
        cells_NC = optimizer.step(cells_NC, gradient_NC)

    assert losses[-1] < 0.2 * losses[0]
    assert codec.to_bytes() == before


def test_a_cells_adam_ignores_its_neighbours_and_their_age() -> None:
    gradients = torch.randn(4, 2, 6, generator=torch.Generator().manual_seed(0))
    alone = CellAdam(torch.zeros(1, 6), rate=0.1)
    shared = CellAdam(torch.zeros(2, 6), rate=0.1)
    cell_1C, cells_2C = torch.zeros(1, 6), torch.zeros(2, 6)
    cells_2C = shared.step(cells_2C, gradients[0])
    shared.reset(torch.tensor([1]))
    cells_2C[1] = 0

    for gradient_2C in gradients[1:]:
        cells_2C = shared.step(cells_2C, gradient_2C)
        cell_1C = alone.step(cell_1C, gradient_2C[1:])

    assert torch.equal(cells_2C[1], cell_1C[0])


def test_a_row_reads_the_same_whatever_stands_beside_it(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    cells_NC = codec.encode(tokens_NT)
    order = torch.randperm(len(tokens_NT), generator=torch.Generator().manual_seed(1))

    straight = read_cells(codec, cells_NC, None, tokens_NT, mask_NT)
    shuffled = read_cells(codec, cells_NC[order], None, tokens_NT[order], mask_NT[order])

    assert torch.equal(straight.loss_NT[order], shuffled.loss_NT)
    assert torch.equal(straight.margin_NT[order], shuffled.margin_NT)
    assert codec.vocab_size == VOCABULARY


def test_a_gradient_pulled_back_is_that_of_its_slope_bit_for_bit() -> None:
    cells_NC = torch.randn(5, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weight_CS = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
    slope_NTS = torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(2))

    def slots() -> torch.Tensor:
        return torch.tanh(cells_NC @ weight_CS).unsqueeze(1).expand(-1, 3, -1)

    (expected_NC,) = torch.autograd.grad(slots(), cells_NC, slope_NTS)

    assert torch.equal(_pulled_back(slots(), slope_NTS, cells_NC), expected_NC)
