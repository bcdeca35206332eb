"""What is attached where: the invariants of attachment for every interface."""

import numpy as np
import pytest
import torch

from tasks.assembly import SKILL_CHARACTERS, SKILL_RESULT, SKILL_TOKENS, Attachment, ResidualCore
from tasks.corpus import Tokenizer
from tasks.skills import Interface, Renderer
from tasks.skills.render import character_bits, source_widths

VALUES = (-981_234_567_890, 7, 1500)
PROMPTS = ("what is 3 plus 4?", "seven times -12", "compute 30000 * 99 now")
RETURNING = (Interface.POSITIONAL, Interface.COMBINED, Interface.GLOBAL)


def attach(
    renderer: Renderer, interface: Interface
) -> tuple[torch.Tensor, list[int], tuple[Attachment, ...]]:
    """A batch of three rows: tokens padded behind, the prompts' lengths, attachments."""
    prompts = [renderer.prompt(text) for text in PROMPTS]
    answers = [renderer.answer(value) for value in VALUES]
    length = max(len(p) + renderer.params.slots for p in prompts)
    tokens_BL = torch.zeros(3, length, dtype=torch.int64)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        joined = np.concatenate([prompt, answer])
        tokens_BL[row, : len(joined)] = torch.from_numpy(joined)
    lengths = [len(prompt) for prompt in prompts]
    return tokens_BL, lengths, renderer.attach(interface, answers, lengths)


@pytest.mark.parametrize(
    ("interface", "kinds"),
    [
        (Interface.NONE, []),
        (Interface.POSITIONAL, [SKILL_TOKENS]),
        (Interface.COMBINED, [SKILL_TOKENS, SKILL_CHARACTERS]),
        (Interface.GLOBAL, [SKILL_RESULT]),
    ],
)
def test_an_interface_attaches_its_kinds_with_the_widths_that_the_core_reads(
    renderer: Renderer, interface: Interface, kinds: list[str]
) -> None:
    _, _, attachments = attach(renderer, interface)
    widths = source_widths(renderer.params)
    assert [part.kind for part in attachments] == kinds
    assert all(part.source_EU.shape[1] == widths[part.kind] for part in attachments)


def test_a_slot_is_told_its_own_token_and_the_end_is_told_by_nobody(renderer: Renderer) -> None:
    tokens_BL, lengths, [part] = attach(renderer, Interface.POSITIONAL)
    following = tokens_BL[part.row_E, part.node_E + 1]
    assert torch.equal(part.source_EU, renderer.identity.code(following))
    counts = torch.bincount(part.row_E).tolist()
    assert counts == [len(renderer.answer(value)) for value in VALUES]
    assert torch.equal(part.boundary_E, torch.tensor(lengths)[part.row_E] - 1)


def test_the_global_vector_is_the_same_at_every_slot_and_holds_all_codes(renderer: Renderer) -> None:
    _, _, [part] = attach(renderer, Interface.GLOBAL)
    for row, value in enumerate(VALUES):
        rows_EU = part.source_EU[part.row_E == row]
        assert len(rows_EU) == renderer.params.slots
        assert torch.equal(rows_EU, rows_EU[:1].expand_as(rows_EU))
        codes = renderer.identity.code(torch.from_numpy(renderer.answer(value))).flatten()
        assert torch.equal(rows_EU[0, : len(codes)], codes)
        assert not rows_EU[0, len(codes) :].any()


def test_character_observations_tell_the_characters_of_a_token(
    renderer: Renderer, tokenizer: Tokenizer
) -> None:
    bits = character_bits("-4", 3).reshape(3, 8)
    assert [int(((row > 0) * 2 ** torch.arange(8)).sum()) for row in bits] == [ord("-"), ord("4"), 0]
    assert not bits[2].any()
    assert not character_bits("", 3).any()
    distinct = {tuple(row.tolist()) for row in renderer.characters_VC}
    assert len(distinct) > 0.9 * (
        tokenizer.vocab_size - 128
    )  # halves of characters have no text of their own


def test_every_number_of_64_bits_fits_the_slots(renderer: Renderer) -> None:
    for value in (-(2**63), 2**63 - 1, -8_888_888_888_888_888_888):
        assert len(renderer.answer(value)) < renderer.params.slots
        assert renderer.text(renderer.answer(value)) == str(value)


@pytest.mark.parametrize("interface", RETURNING)
def test_a_result_changes_nothing_before_the_prompt_was_read(
    core: ResidualCore, renderer: Renderer, interface: Interface
) -> None:
    tokens_BL, lengths, attachments = attach(renderer, interface)
    alone, shown = core(tokens_BL), core(tokens_BL, attachments)
    for row, length in enumerate(lengths):
        assert torch.equal(alone[row, : length - 1], shown[row, : length - 1])
        assert not torch.equal(alone[row, length - 1], shown[row, length - 1])


def test_no_result_leaves_the_core_as_it_is(core: ResidualCore, renderer: Renderer) -> None:
    tokens_BL, lengths, _ = attach(renderer, Interface.NONE)
    nothing = renderer.attach(Interface.POSITIONAL, [None] * 3, lengths)
    assert nothing == ()
    assert torch.equal(core(tokens_BL), core(tokens_BL, nothing))


@pytest.mark.parametrize("interface", RETURNING)
def test_order_of_elements_changes_nothing_and_weight_zero_is_absence(
    core: ResidualCore, renderer: Renderer, interface: Interface
) -> None:
    tokens_BL, _, attachments = attach(renderer, interface)
    generator = torch.Generator().manual_seed(3)
    shuffled = [part.select(torch.randperm(len(part), generator=generator)) for part in attachments]
    torch.testing.assert_close(core(tokens_BL, attachments), core(tokens_BL, shuffled), rtol=0, atol=1e-4)
    for part in attachments:
        part.weight_E.zero_()
    assert torch.equal(core(tokens_BL), core(tokens_BL, attachments))
