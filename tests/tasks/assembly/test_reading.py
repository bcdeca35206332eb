"""Cross-reading: exact absence, no order, causal, and copying without any alignment or training."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.assembly import (
    MEMORY,
    TEXT,
    AssemblyParams,
    CellTable,
    CoreArchitecture,
    CrossReading,
    LanguageStream,
    OpenElement,
    ReadingArchitecture,
    ReadingParams,
    ReadingRows,
    ResidualCore,
    TokenTable,
    load_reading,
    new_core,
    train_cross_reading,
)
from tasks.codec import Codec, CodecArchitecture, blocks, freeze
from tasks.errors import BadPayload
from tests.tasks.assembly.conftest import SOURCE, VOCABULARY, batches, seeded

LENGTH = 60
WORDS = 3000


def table(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(VOCABULARY, SOURCE, generator=generator)


@pytest.fixture(scope="module")
def reading() -> CrossReading:
    """One with every number other than at the start, as after training."""
    generator = seeded(4)
    made = CrossReading(ReadingArchitecture(context_tokens=3, sharpness=6, threshold=0.3), table(generator))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return made.requires_grad_(False)


def some_elements(reading: CrossReading, count: int, seed: int) -> list[OpenElement]:
    generator = seeded(seed)
    return [
        reading.memory(MEMORY, torch.randn(4 + number, SOURCE, generator=generator))
        for number in range(count)
    ]


def test_without_an_element_the_logits_are_those_of_the_detached_core_bit_for_bit(
    core: ResidualCore, reading: CrossReading
) -> None:
    tokens_BL = torch.randint(VOCABULARY, (2, 9), generator=seeded(0))
    nothing = reading.attach([[], []], tokens_BL)
    assert nothing == []
    assert torch.equal(core(tokens_BL, nothing), core(tokens_BL))


def test_an_element_that_agrees_with_nothing_is_absent_and_its_row_stays_as_it_is(
    core: ResidualCore, reading: CrossReading
) -> None:
    tokens_BL = torch.randint(VOCABULARY, (1, 9), generator=seeded(0))
    silent = reading.memory(MEMORY, torch.zeros(5, SOURCE))
    strict = CrossReading(ReadingArchitecture(sharpness=60, threshold=0.5), reading.table_VS)
    shown = strict.attach([[silent]], tokens_BL)
    assert shown == []
    assert torch.equal(core(tokens_BL, shown), core(tokens_BL))


@settings(max_examples=25)
@given(tokens_BL=batches(), seed=st.integers(0, 1000), forced=st.booleans())
def test_the_order_of_elements_changes_nothing_beyond_rounding(
    core: ResidualCore, reading: CrossReading, tokens_BL: torch.Tensor, seed: int, forced: bool
) -> None:
    elements = some_elements(reading, 4, seed)
    one, other = (
        core(tokens_BL, reading.attach([order] * len(tokens_BL), tokens_BL, forced=forced))
        for order in (elements, elements[::-1])
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


@settings(max_examples=25)
@given(tokens_BL=batches(), seed=st.integers(0, 1000), data=st.data())
def test_later_tokens_change_nothing_before_them(
    core: ResidualCore, reading: CrossReading, tokens_BL: torch.Tensor, seed: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, tokens_BL.shape[1] - 1))
    changed_BL = tokens_BL.clone()
    changed_BL[:, cut:] = (changed_BL[:, cut:] + 1) % VOCABULARY
    elements = [some_elements(reading, 3, seed)] * len(tokens_BL)
    one, other = (core(t, reading.attach(elements, t))[:, :cut] for t in (tokens_BL, changed_BL))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@settings(max_examples=25)
@given(tokens_BL=batches(), seed=st.integers(0, 1000), data=st.data())
def test_windows_read_what_the_whole_reads(
    reading: CrossReading, tokens_BL: torch.Tensor, seed: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, tokens_BL.shape[1] - 1))
    elements = [some_elements(reading, 3, seed)] * len(tokens_BL)
    [whole] = reading.attach(elements, tokens_BL, forced=True)
    [window] = reading.attach(elements, tokens_BL, start, forced=True)
    late = whole.select(whole.node_E >= start)
    assert torch.equal(late.node_E, window.node_E)
    assert not window.boundary_E.any()
    torch.testing.assert_close(late.weight_E, window.weight_E, rtol=0, atol=1e-5)
    torch.testing.assert_close(late.source_EU, window.source_EU, rtol=0, atol=1e-4)


def test_forced_weights_of_a_node_sum_to_one_and_weighed_ones_leave_room_for_nothing(
    reading: CrossReading,
) -> None:
    tokens_BL = torch.randint(VOCABULARY, (1, 8), generator=seeded(2))
    elements = [some_elements(reading, 2, 5)]
    totals = []
    for forced in (True, False):
        [shown] = reading.attach(elements, tokens_BL, forced=forced)
        totals.append(torch.zeros(8).index_add(0, shown.node_E, shown.weight_E))
    torch.testing.assert_close(totals[0], torch.ones(8), rtol=0, atol=0.05)  # small ones are left out
    assert (totals[1] < totals[0] - 0.01).all()


def test_a_payload_gives_the_same_reading_back_and_fits_no_other_table(reading: CrossReading) -> None:
    again = load_reading(reading.to_bytes(), reading.table_VS)
    assert again.to_bytes() == reading.to_bytes()
    assert len(reading.to_bytes()) < 4 * (SOURCE**2 + 100) + 1000  # the table is not in it
    with pytest.raises(BadPayload, match="it reads by a table of"):
        load_reading(reading.to_bytes(), reading.table_VS[:, :-1])
    with pytest.raises(BadPayload):
        load_reading(b"nothing", reading.table_VS)


@pytest.fixture(scope="module")
def copying() -> Codec:
    """A codec whose cells are its tokens' own codes."""
    architecture = CodecArchitecture(
        block_tokens=16, cell_width=16 * 64, slot_width=64, encoder_layers=0, decoder_layers=0
    )
    made = Codec(architecture, WORDS, seeded(0))
    with torch.no_grad():
        for layer in (made.to_cell, made.from_cell):
            layer.weight.copy_(torch.eye(64))
            layer.bias.zero_()
        made.head.weight.mul_(3)
    return freeze(made)


@pytest.fixture(scope="module")
def documents() -> list[torch.Tensor]:
    return [torch.randint(WORDS, (LENGTH,), generator=seeded(70 + n)) for n in range(6)]


@pytest.fixture(scope="module")
def reader(copying: Codec, documents: list[torch.Tensor]) -> ResidualCore:
    params = AssemblyParams(architecture=CoreArchitecture(width=96, iterations=2, hidden=32))
    language = LanguageStream([ids.numpy() for ids in documents], end=0, params=params)
    return new_core(params, copying, language).requires_grad_(False).eval()


def tables(codec: Codec, documents: list[torch.Tensor]) -> tuple[CellTable, TokenTable]:
    cells = [codec.encode(blocks(ids.numpy(), 16)[0]) for ids in documents]
    lengths = [len(ids) for ids in documents]
    return CellTable(codec, cells, lengths), TokenTable([ids.numpy() for ids in documents])


PARAMS = ReadingParams(
    architecture=ReadingArchitecture(context_tokens=6, threshold=0.8),
    steps=3,
    warmup_steps=0,
    rows=4,
    cue_tokens=12,
)


@pytest.mark.parametrize("kind", [MEMORY, TEXT])
def test_untrained_it_copies_what_follows_the_same_words_and_ignores_other_documents(
    kind: str, copying: Codec, documents: list[torch.Tensor], reader: ResidualCore
) -> None:
    reading = CrossReading(PARAMS.architecture, copying.head.weight.detach())
    cells, _ = tables(copying, documents)
    opened = [
        reading.memory(kind, cells.slots(torch.tensor([n]), torch.zeros(1, dtype=torch.int64), LENGTH)[0][0])
        if kind == MEMORY
        else reading.text(kind, ids, reader.identity.code(ids))
        for n, ids in enumerate(documents)
    ]
    tokens_BL = documents[2][None, 20:45]
    with torch.no_grad():
        own, wrong, none = (
            reader(tokens_BL[:, :-1], reading.attach([chosen], tokens_BL[:, :-1]))[:, 6:]
            for chosen in (opened, opened[3:], [])
        )
    target_BL = tokens_BL[:, 7:]
    assert (own.argmax(-1) == target_BL).float().mean() >= 0.9
    losses = [-float(part.gather(-1, target_BL[..., None]).mean()) for part in (own, wrong, none)]
    assert losses[0] < losses[2] - 2
    assert losses[1] < losses[2] + 0.1


def test_training_moves_the_reading_and_never_the_core(
    copying: Codec, documents: list[torch.Tensor], reader: ResidualCore
) -> None:
    before, payloads = reader.to_bytes(), []
    for _ in range(2):
        reading = CrossReading(PARAMS.architecture, copying.head.weight.detach())
        start = reading.to_bytes()
        rows = ReadingRows(*tables(copying, documents), reading, PARAMS)
        figures = train_cross_reading(reading, reader, PARAMS, rows, rows)
        payloads.append(reading.to_bytes())
    assert reader.to_bytes() == before
    assert payloads[0] == payloads[1] != start
    assert [point.step for point in figures] == [0, 3]
    assert figures[-1].right < figures[-1].none - 2
    assert not any(parameter.requires_grad for parameter in reading.parameters())
