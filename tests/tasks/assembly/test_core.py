"""Invariants of the core: absence is exact, order is nothing, the future and late elements are unseen."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from store.errors import IntegrityError
from tasks.assembly import MEMORY, TEXT, Attachment, ResidualCore, load_core
from tests.tasks.assembly.conftest import SOURCE, attachments_for, batches

ORDER_TOLERANCE = 1e-4  # nats; float32 sums of a node's elements in another order
WINDOW_TOLERANCE = 1e-4  # nats; float32 products over windows of another length

draws = st.data()
quick = settings(max_examples=40, deadline=None)


def nothing() -> Attachment:
    empty = torch.zeros(0, dtype=torch.int64)
    return Attachment(MEMORY, torch.zeros(0, SOURCE), empty, empty, empty, torch.zeros(0))


@quick
@given(draws)
def test_without_elements_the_logits_are_those_of_the_detached_core_bit_for_bit(
    core: ResidualCore, data: st.DataObject
) -> None:
    tokens_BL = data.draw(batches())
    assert torch.equal(core(tokens_BL, [nothing()]), core(tokens_BL))


@quick
@given(draws)
def test_weights_of_zero_equal_absence_bit_for_bit(core: ResidualCore, data: st.DataObject) -> None:
    tokens_BL = data.draw(batches())
    present, other = data.draw(attachments_for(tokens_BL)), data.draw(attachments_for(tokens_BL))
    silent = replace(other, weight_E=torch.zeros(len(other)))
    assert torch.equal(core(tokens_BL, [silent]), core(tokens_BL))
    assert torch.equal(core(tokens_BL, [present, silent]), core(tokens_BL, [present]))


@quick
@given(draws)
def test_rows_without_elements_are_untouched_by_the_elements_of_other_rows(
    core: ResidualCore, data: st.DataObject
) -> None:
    tokens_BL = data.draw(batches()).repeat(2, 1)
    attached = data.draw(attachments_for(tokens_BL[: len(tokens_BL) // 2]))
    half = len(tokens_BL) // 2
    assert torch.equal(core(tokens_BL, [attached])[half:], core(tokens_BL)[half:])


@quick
@given(draws)
def test_the_order_of_elements_changes_rounding_only(core: ResidualCore, data: st.DataObject) -> None:
    tokens_BL = data.draw(batches())
    attached = data.draw(attachments_for(tokens_BL))
    order = data.draw(st.permutations(range(len(attached))))
    shuffled = attached.select(torch.tensor(order))
    torch.testing.assert_close(
        core(tokens_BL, [shuffled]), core(tokens_BL, [attached]), rtol=0, atol=ORDER_TOLERANCE
    )


@quick
@given(draws)
def test_future_tokens_and_elements_change_nothing_before_them(
    core: ResidualCore, data: st.DataObject
) -> None:
    tokens_BL = data.draw(batches())
    attached = data.draw(attachments_for(tokens_BL))
    cut = data.draw(st.integers(1, tokens_BL.shape[1] - 1))
    changed_BL = tokens_BL.clone()
    changed_BL[:, cut:] = (changed_BL[:, cut:] + 7) % core.vocab_size
    before = core(tokens_BL, [attached])[:, :cut]
    after = core(changed_BL, [attached.select(attached.node_E < cut)])[:, :cut]
    torch.testing.assert_close(after, before, rtol=0, atol=WINDOW_TOLERANCE)


@quick
@given(draws)
def test_a_later_boundary_changes_nothing_before_it(core: ResidualCore, data: st.DataObject) -> None:
    tokens_BL = data.draw(batches())
    attached = data.draw(attachments_for(tokens_BL))
    boundary = data.draw(st.integers(1, tokens_BL.shape[1]))
    late = replace(attached, boundary_E=torch.full((len(attached),), boundary))
    available = attached.select(attached.node_E >= boundary)
    assert torch.equal(core(tokens_BL, [late]), core(tokens_BL, [available]))
    torch.testing.assert_close(
        core(tokens_BL, [late])[:, :boundary], core(tokens_BL)[:, :boundary], rtol=0, atol=WINDOW_TOLERANCE
    )


@quick
@given(draws)
def test_continuing_a_sequence_gives_what_the_whole_sequence_gives(
    core: ResidualCore, data: st.DataObject
) -> None:
    tokens_BL = data.draw(batches())
    parts = [data.draw(attachments_for(tokens_BL)), data.draw(attachments_for(tokens_BL, TEXT))]
    cut = data.draw(st.integers(1, tokens_BL.shape[1] - 1))
    first, state = core.continue_from(tokens_BL[:, :cut], parts)
    logits = [first]
    for position in range(cut, tokens_BL.shape[1]):
        following, state = core.continue_from(tokens_BL[:, position : position + 1], parts, state)
        logits.append(following)
    torch.testing.assert_close(torch.cat(logits, 1), core(tokens_BL, parts), rtol=0, atol=WINDOW_TOLERANCE)


@quick
@given(draws)
def test_logits_are_log_probabilities(core: ResidualCore, data: st.DataObject) -> None:
    tokens_BL = data.draw(batches())
    total_BL = core(tokens_BL, [data.draw(attachments_for(tokens_BL))]).exp().sum(-1)
    torch.testing.assert_close(total_BL, torch.ones_like(total_BL), rtol=0, atol=1e-4)


def test_the_correction_stays_within_gamma(core: ResidualCore) -> None:
    z_BLD = 100 * torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(0))
    assert core.correction(z_BLD, -z_BLD).abs().max() <= core.correction.gamma.abs()


def test_an_unknown_kind_is_named(core: ResidualCore) -> None:
    one = torch.zeros(1, dtype=torch.int64)
    stranger = Attachment("picture", torch.zeros(1, 4), one, one, one, torch.ones(1))
    with pytest.raises(ValueError, match="picture"):
        core(torch.zeros(1, 2, dtype=torch.int64), [stranger])


def test_negative_weights_and_unequal_lengths_are_refused() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match="negative"):
        Attachment(MEMORY, torch.zeros(1, SOURCE), one, one, one, torch.tensor([-0.1]))
    with pytest.raises(ValueError, match="node_E"):
        Attachment(MEMORY, torch.zeros(1, SOURCE), one, one[:0], one, torch.ones(1))


def test_a_payload_reads_back_as_the_same_core_and_damage_is_noticed(core: ResidualCore) -> None:
    payload = core.to_bytes()
    assert payload == load_core(payload).to_bytes()
    tokens_BL = torch.arange(12).view(2, 6)
    assert torch.equal(load_core(payload)(tokens_BL), core(tokens_BL))
    with pytest.raises(IntegrityError):
        load_core(payload[:100])
