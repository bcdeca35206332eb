"""Training of a small core on real documentation: copying from the start, resumption bit for bit."""

from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

from store import Element, Store
from tasks.assembly import (
    AssemblyParams,
    AttachmentRows,
    CellTable,
    CoreArchitecture,
    CoreTrainer,
    LanguageStream,
    ResidualCore,
    TokenTable,
    TrainingData,
    check_train_split,
    new_core,
    product_dtype,
    target_nll,
    train,
)
from tasks.checkpoint import Checkpoints
from tasks.codec import Codec, CodecArchitecture, blocks, freeze
from tasks.corpus import EOS, TokenizerParams, element_split, train_bpe
from tasks.errors import TooLittleText

PARAMS = AssemblyParams(
    architecture=CoreArchitecture(width=96, iterations=2, hidden=64, correction_hidden=32),
    steps=24,
    warmup_steps=4,
    attachment_every=2,
    language_rows=8,
    language_tokens=32,
    attachment_rows=12,
    cue_tokens=16,
    target_tokens=4,
    validation_rows=24,
    curve_points=2,
)


@pytest.fixture(scope="module")
def codec() -> Codec:
    """A codec whose slots are the tokens' own codes: it copies without any training."""
    architecture = CodecArchitecture(
        block_tokens=16, cell_width=256, slot_width=64, encoder_layers=0, decoder_layers=0
    )
    made = Codec(architecture, 400, torch.Generator().manual_seed(0))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        basis = torch.linalg.qr(torch.randn(64, 16, generator=generator)).Q
        made.encoder_norm.weight.fill_(1.0)
        made.to_cell.weight.copy_(made.identity.lift_KS / 64)
        made.from_cell.weight.copy_(basis)
        codes = made.identity.code(torch.arange(400))
        made.head.weight.copy_(codes @ basis.T)
    return freeze(made)


@pytest.fixture(scope="module")
def documents() -> list[np.ndarray]:
    texts = [topics[name] for name in sorted(topics) if 600 < len(topics[name]) < 6000][:40]
    tokenizer = train_bpe(texts, TokenizerParams(vocab_size=400))
    return [np.asarray(ids) for ids in tokenizer.encode_many(texts)]


@pytest.fixture(scope="module")
def data(codec: Codec, documents: list[np.ndarray]) -> TrainingData:
    language = LanguageStream(documents[:20], end=EOS, params=PARAMS)
    rows = AttachmentRows(*tables(codec, documents[20:30]), codec.identity, PARAMS)
    held_out = AttachmentRows(*tables(codec, documents[30:]), codec.identity, PARAMS)
    return TrainingData(language, rows, held_out)


def tables(codec: Codec, documents: list[np.ndarray]) -> tuple[CellTable, TokenTable]:
    cells = [codec.encode(blocks(ids, codec.architecture.block_tokens)[0]) for ids in documents]
    return CellTable(codec, cells, [len(ids) for ids in documents]), TokenTable(documents)


@pytest.fixture
def core(codec: Codec, data: TrainingData) -> ResidualCore:
    return new_core(PARAMS, codec, data.language)


def test_an_untrained_core_copies_right_evidence_and_speaks_in_frequencies_without(
    core: ResidualCore, data: TrainingData
) -> None:
    assert data.held_out is not None
    nll = {
        shown: target_nll(core, data.held_out.fixed(shown, 24, 5), 4) for shown in ("none", "right", "text")
    }
    counts_V = data.language.counts(core.vocab_size).double() + 1
    frequency_V = counts_V / counts_V.sum()
    entropy = -float((frequency_V * frequency_V.log()).sum())
    assert nll["right"] < 0.3
    assert nll["text"] < 0.3
    assert abs(nll["none"] - entropy) < 0.5


def test_forced_wrong_evidence_costs_little_because_the_prompt_contradicts_it(
    core: ResidualCore, data: TrainingData
) -> None:
    assert data.held_out is not None
    none, wrong = (target_nll(core, data.held_out.fixed(shown, 24, 5), 4) for shown in ("none", "wrong"))
    assert wrong < none + 0.3


def test_wrong_evidence_weighed_by_the_system_is_no_evidence(core: ResidualCore, data: TrainingData) -> None:
    assert data.held_out is not None
    none, weighed = (data.held_out.fixed(shown, 24, 5) for shown in ("none", "wrong_weighed"))
    assert target_nll(core, weighed, 4) == target_nll(core, none, 4)


def test_training_lowers_the_language_loss_and_keeps_copying(core: ResidualCore, data: TrainingData) -> None:
    curve = train(core, PARAMS, data)
    assert [point.step for point in curve] == [0, 12, 24]
    assert curve[-1].nll["none"] < curve[0].nll["none"]
    assert curve[-1].nll["right"] < 0.3


def test_an_interrupted_training_continues_bit_for_bit(
    codec: Codec, data: TrainingData, tmp_path: Path
) -> None:
    whole = new_core(PARAMS, codec, data.language)
    curve = train(whole, PARAMS, data)
    checkpoints = Checkpoints(tmp_path, "0" * 64)
    interrupted = CoreTrainer(new_core(PARAMS, codec, data.language), PARAMS, data)
    interrupted.measure()
    for _ in range(13):
        interrupted.step()
        if interrupted.finished == 12:
            interrupted.measure()
    interrupted.save(checkpoints)
    resumed = new_core(PARAMS, codec, data.language)
    assert train(resumed, PARAMS, data, checkpoints=checkpoints) == curve
    assert resumed.to_bytes() == whole.to_bytes()


def test_batches_follow_from_seed_and_step_alone(data: TrainingData) -> None:
    again, first = data.rows.batch(5), data.rows.batch(5)
    assert torch.equal(first.tokens_BL, again.tokens_BL)
    assert not torch.equal(first.tokens_BL, data.rows.batch(7).tokens_BL)
    for one, other in zip(first.attachments, again.attachments, strict=True):
        assert torch.equal(one.source_EU, other.source_EU)


def test_slot_states_do_not_depend_on_the_other_documents_of_a_request(data: TrainingData) -> None:
    cells = data.rows.cells
    documents, starts = torch.tensor([0, 3, 7]), torch.tensor([5, 20, 0])
    together, _ = cells.slots(documents, starts, 12)
    for row in range(3):
        alone, _ = cells.slots(documents[row : row + 1], starts[row : row + 1], 12)
        assert torch.equal(alone[0], together[row])


def test_positions_outside_a_document_are_invalid(data: TrainingData) -> None:
    text = data.rows.text
    length = int(text.lengths_N[2])
    _, valid_BL = text.tokens(torch.tensor([2, 2]), torch.tensor([-3, length - 4]), 8)
    assert valid_BL.tolist() == [[False] * 3 + [True] * 5, [True] * 4 + [False] * 4]


def test_too_little_to_train_on_is_said(codec: Codec, documents: list[np.ndarray]) -> None:
    with pytest.raises(TooLittleText, match="ingest more text"):
        LanguageStream([documents[0][:8]], end=EOS, params=PARAMS)
    with pytest.raises(TooLittleText, match="build more memories"):
        AttachmentRows(*tables(codec, documents[:1]), codec.identity, PARAMS)


@pytest.mark.parametrize(("train", "enough"), [(0, False), (1, False), (2, True)])
def test_memories_of_the_other_splits_do_not_count_for_training(
    tmp_path: Path, train: int, enough: bool
) -> None:
    names = [f"m{number}" for number in range(40)]
    splits = {name: element_split(f"memory/{name}") for name in names}
    chosen = [name for name in names if splits[name] == "train"][:train]
    chosen += [name for name in names if splits[name] != "train"]
    store = Store.create(str(tmp_path))
    elements = [Element("memory", name, b"", media="application/octet-stream") for name in chosen]
    snapshot = store.pin(store.publish(elements, message="m"), message="m")

    if enough:
        check_train_split(snapshot)
    else:
        with pytest.raises(TooLittleText, match=f"holds {train} train-split memories"):
            check_train_split(snapshot)


def test_products_are_bfloat16_only_where_they_are_not_emulated() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    if "avx512f" not in flags:
        pytest.skip("no x86 processor that says what it has")
    native = any(flag in flags for flag in ("amx_bf16", "avx512_bf16"))

    assert product_dtype(torch.device("cpu")) == (torch.bfloat16 if native else torch.float32)
    assert product_dtype(torch.device("cuda")) == torch.bfloat16
