"""Candidates: what a block is scored against is its own, and what is computed is a softmax over it."""

import pytest
import torch
from torch.nn import functional as F

from tasks.codec import (
    Candidates,
    Codec,
    read_candidates_with_gradient,
    read_with_gradient,
    read_with_rivals,
    score_candidates,
)
from tests.tasks.codec.conftest import VOCABULARY

BLOCKS, SIZE = 6, 40


@pytest.fixture
def batch(codec: Codec) -> tuple[torch.Tensor, torch.Tensor]:
    width = codec.architecture.block_tokens
    generator = torch.Generator().manual_seed(3)
    tokens_NT = torch.randint(2, VOCABULARY, (BLOCKS, width), generator=generator)
    mask_NT = torch.ones_like(tokens_NT, dtype=torch.bool)
    mask_NT[-1, 3:] = False
    return tokens_NT.where(mask_NT, 0), mask_NT


def filled(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor], size: int = SIZE, rivals: int = 2
) -> Candidates:
    tokens_NT, mask_NT = batch
    slots_NTS = codec.slots(codec.encode(tokens_NT))
    _, rivals_NTR = read_with_rivals(codec, slots_NTS, tokens_NT, mask_NT, rivals)
    candidates = Candidates(codec, len(tokens_NT), size, torch.float32)
    for row in range(len(tokens_NT)):
        candidates.put(row, tokens_NT[row], mask_NT[row], rivals_NTR[row])
    return candidates


def test_rivals_are_the_best_wrong_tokens_and_the_reading_is_the_full_one(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    slots_NTS = codec.slots(codec.encode(tokens_NT))

    reading, rivals_NTR = read_with_rivals(codec, slots_NTS, tokens_NT, mask_NT, 3)

    logits_NTV = codec.head(slots_NTS)
    true_NT = logits_NTV.gather(2, tokens_NT.unsqueeze(2)).squeeze(2)
    wrong_NTV = logits_NTV.scatter(2, tokens_NT.unsqueeze(2), -torch.inf)
    assert torch.equal(rivals_NTR, wrong_NTV.topk(3, dim=2).indices)
    expected_NT = true_NT - wrong_NTV.amax(2)
    torch.testing.assert_close(reading.margin_NT[mask_NT], expected_NT[mask_NT])


def test_a_score_over_candidates_is_a_cross_entropy_over_them(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    candidates = filled(codec, batch)
    slots_NTS = codec.slots(codec.encode(tokens_NT)).detach().requires_grad_()

    reading, slope_NTS = score_candidates(candidates, slots_NTS.detach(), mask_NT)

    head_VS = codec.head.weight
    for row in range(BLOCKS):
        ids_K = torch.cdist(candidates.head_NKS[row], head_VS).argmin(1)
        assert len(ids_K.unique()) == SIZE, "candidates are distinct"
        place_T = (ids_K == tokens_NT[row].unsqueeze(1)).float().argmax(1)
        losses_T = F.cross_entropy(slots_NTS[row] @ head_VS[ids_K].T, place_T, reduction="none")
        real_T = mask_NT[row]
        torch.testing.assert_close(reading.loss_NT[row][real_T], losses_T[real_T], atol=1e-5, rtol=1e-4)
        (slope_TS,) = torch.autograd.grad(losses_T[real_T].sum(), slots_NTS, retain_graph=True)
        torch.testing.assert_close(slope_NTS[row], slope_TS[row], atol=1e-5, rtol=1e-4)
    assert reading.right_NT[~mask_NT].all()
    assert not slope_NTS[~mask_NT].any()


def test_the_whole_vocabulary_as_candidates_reads_as_the_full_softmax(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    cells_NC = codec.encode(tokens_NT)
    everything = filled(codec, batch, size=VOCABULARY)

    reading, gradient_NC = read_candidates_with_gradient(
        codec, cells_NC, tokens_NT, mask_NT, "bfloat16", everything
    )

    full, expected_NC = read_with_gradient(codec, cells_NC, tokens_NT, mask_NT, "bfloat16")
    torch.testing.assert_close(reading.margin_NT, full.margin_NT, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(reading.loss_NT, full.loss_NT, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(gradient_NC, expected_NC, atol=1e-4, rtol=1e-3)


def test_fewer_candidates_flatter_and_added_ones_take_the_place_of_random_ones(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    slots_NTS = codec.slots(codec.encode(tokens_NT)).detach()
    candidates = filled(codec, batch, rivals=1)
    before, _ = score_candidates(candidates, slots_NTS, mask_NT)
    full, rivals_NTR = read_with_rivals(codec, slots_NTS, tokens_NT, mask_NT, 3)

    assert (before.loss_NT <= full.loss_NT + 1e-5).all()
    assert not candidates.add(0, [*tokens_NT[0].tolist(), *rivals_NTR[0, :, 0].tolist()]), "all are there"
    added = candidates.add(0, rivals_NTR[0, :, 1:].flatten().tolist())

    after, _ = score_candidates(candidates, slots_NTS, mask_NT)
    assert added
    assert after.loss_NT[0].sum() > before.loss_NT[0].sum()
    assert torch.equal(after.loss_NT[1:], before.loss_NT[1:])
    torch.testing.assert_close(after.margin_NT[mask_NT], full.margin_NT[mask_NT], atol=1e-4, rtol=1e-4)


def test_products_in_bfloat16_come_close_to_those_in_float32(
    codec: Codec, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    tokens_NT, mask_NT = batch
    cells_NC = codec.encode(tokens_NT)
    exact = filled(codec, batch)
    rounded = filled(codec, batch)
    rounded.head_NKS = rounded.head_NKS.bfloat16()

    reading, gradient_NC = read_candidates_with_gradient(
        codec, cells_NC, tokens_NT, mask_NT, "bfloat16", rounded
    )

    expected, expected_NC = read_candidates_with_gradient(
        codec, cells_NC, tokens_NT, mask_NT, "bfloat16", exact
    )
    assert reading.loss_NT.dtype == gradient_NC.dtype == torch.float32
    torch.testing.assert_close(reading.loss_NT, expected.loss_NT, atol=0.15, rtol=0.1)
    assert F.cosine_similarity(gradient_NC.flatten(), expected_NC.flatten(), dim=0) > 0.98


@pytest.mark.parametrize("size", [8, VOCABULARY + 1])
def test_a_number_of_candidates_that_cannot_be_is_refused(codec: Codec, size: int) -> None:
    with pytest.raises(ValueError, match="candidates for blocks of 8 tokens"):
        Candidates(codec, 1, size, torch.float32)
