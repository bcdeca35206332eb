"""The codec as a map: shapes, slot structure, parents, payload."""

import pytest
import torch
from pydantic import ValidationError

from tasks.codec import Codec, CodecArchitecture, CodecParams, blocks, load_codec, parent_means
from tasks.errors import BadPayload
from tests.tasks.codec.conftest import ARCHITECTURE, PARAMS, VOCABULARY, token_documents

PARENTED = CodecArchitecture(**{**ARCHITECTURE.model_dump(), "parent_spans": (2, 4)})


def fresh(architecture: CodecArchitecture = ARCHITECTURE) -> Codec:
    return Codec(architecture, VOCABULARY, torch.Generator().manual_seed(5))


def test_logits_are_the_head_on_the_slot_states_and_come_from_the_cell_alone() -> None:
    codec = fresh()
    tokens_BT, _ = blocks(token_documents(3, 1)[0], 8)

    z_BC = codec.encode(tokens_BT)
    slots_BTS = codec.slots(z_BC)

    assert z_BC.shape == (len(tokens_BT), 96)
    assert z_BC.dtype == torch.float32
    assert slots_BTS.shape == (len(tokens_BT), 8, 32)
    assert torch.equal(codec.logits(z_BC), slots_BTS @ codec.head.weight.T)


def test_slots_start_independent_because_the_mixing_starts_at_zero() -> None:
    codec = fresh()
    tokens_BT = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12], [5, 6, 99, 8, 9, 10, 11, 12]])

    z_BTc = codec.encode(tokens_BT).view(2, 8, 12)
    slots_BTS = codec.slots(z_BTc.flatten(1))

    same = [True, True, False, True, True, True, True, True]
    assert [torch.equal(z_BTc[0, t], z_BTc[1, t]) for t in range(8)] == same
    assert [torch.equal(slots_BTS[0, t], slots_BTS[1, t]) for t in range(8)] == same


def test_training_couples_the_slots(codec: Codec) -> None:
    tokens_BT = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12], [5, 6, 99, 8, 9, 10, 11, 12]])

    z_BTc = codec.encode(tokens_BT).view(2, 8, 12)

    assert not torch.equal(z_BTc[0, 0], z_BTc[1, 0])


def test_parent_means_average_the_documents_own_cells_over_aligned_runs() -> None:
    cells_NC = torch.tensor([[1.0], [3.0], [5.0], [9.0], [100.0]])

    means = parent_means(cells_NC, None, (2, 4))[:, :, 0]

    assert means.tolist() == [[2, 4.5], [2, 4.5], [7, 4.5], [7, 4.5], [100, 100]]


def test_padding_enters_no_parent_mean() -> None:
    cells_NC = torch.tensor([[1.0], [3.0], [77.0], [77.0]])
    present_N = torch.tensor([True, True, False, False])

    assert parent_means(cells_NC, present_N, (2, 4))[:2, :, 0].tolist() == [[2, 2], [2, 2]]


def test_a_decoder_with_parents_reads_them_and_says_so_when_they_are_missing() -> None:
    codec = fresh(PARENTED)
    torch.nn.init.normal_(codec.from_parents.weight, generator=torch.Generator().manual_seed(1))
    cells_NC = torch.randn(4, 96, generator=torch.Generator().manual_seed(2))
    changed_NC = cells_NC.clone()
    changed_NC[3] += 1

    before = codec.slots(cells_NC, codec.parents(cells_NC))
    after = codec.slots(changed_NC, codec.parents(changed_NC))

    assert not torch.allclose(before[0], after[0]), "block 0 shares its span of 4 with block 3"
    with pytest.raises(ValueError, match=r"spans \(2, 4\)"):
        codec.slots(cells_NC)
    with pytest.raises(ValueError, match=r"spans \(\)"):
        fresh().slots(cells_NC, torch.zeros(4, 2, 96))


@pytest.mark.parametrize("architecture", [ARCHITECTURE, PARENTED])
def test_a_payload_restores_the_same_frozen_codec(architecture: CodecArchitecture) -> None:
    codec = fresh(architecture)

    loaded = load_codec(codec.to_bytes(), CodecParams(architecture=architecture))

    tokens_BT, _ = blocks(token_documents(3, 1)[0], 8)
    assert torch.equal(loaded.encode(tokens_BT), codec.encode(tokens_BT))
    assert loaded.to_bytes() == codec.to_bytes()
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_damaged_or_foreign_payloads_are_refused_in_words() -> None:
    payload = fresh().to_bytes()

    for broken in (b"", b"not safetensors at all", payload[:-7], payload.replace(b'"F32"', b'"I32"')):
        with pytest.raises(BadPayload):
            load_codec(broken)
    with pytest.raises(BadPayload, match="architecture"):
        load_codec(payload, CodecParams())
    assert load_codec(payload, PARAMS).vocab_size == VOCABULARY


@pytest.mark.parametrize("spans", [(1,), (4, 2), (4, 6), (4, 4)])
def test_parent_spans_must_nest(spans: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="parent_spans"):
        CodecArchitecture(parent_spans=spans)


def test_a_cell_that_slots_cannot_share_equally_is_refused() -> None:
    with pytest.raises(ValidationError, match="multiple of block_tokens"):
        CodecArchitecture(cell_width=100)
