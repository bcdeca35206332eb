"""Tokens round-trip every text, training is deterministic, and foreign tokenizers are adopted or refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.params import TokenizerParams
from tasks.corpus.tokenizer import EOS, PAD, Tokenizer, adopt, train_bpe
from tasks.errors import BadTokenizer, VocabularyTooLarge

TEXTS = [
    "the quick brown fox jumps over the lazy dog " * 3,
    "def quick(fox): return fox.jumps",
    "lazy\n\tdog",
]
PARAMS = TokenizerParams(vocab_size=300)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(TEXTS, PARAMS)


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_round_trips(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)

    assert tokenizer.decode(ids) == text
    assert ids.dtype == np.uint16
    assert not np.isin(ids, (PAD, EOS)).any()


@pytest.mark.parametrize("text", ["<eos>", "a<pad>b", "<pad><eos>\0", "\ufeff", ""])
def test_a_text_that_spells_a_special_token_is_only_text(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_padding_and_end_marks_vanish_when_decoded(tokenizer: Tokenizer) -> None:
    ids = [*tokenizer.encode("fox"), EOS, PAD, PAD]

    assert tokenizer.decode(ids) == "fox"


def test_many_texts_encode_as_they_do_one_by_one(tokenizer: Tokenizer) -> None:
    for together, alone in zip(tokenizer.encode_many(TEXTS), map(tokenizer.encode, TEXTS), strict=True):
        np.testing.assert_array_equal(together, alone)


def test_the_payload_loads_to_the_same_tokenizer(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_bytes(tokenizer.to_bytes())

    assert again.to_bytes() == tokenizer.to_bytes()
    assert again.vocab_size == tokenizer.vocab_size <= 300


@pytest.mark.parametrize("parallel", ["true", "false"])
def test_training_gives_the_same_bytes_in_another_process(tokenizer: Tokenizer, parallel: str) -> None:
    program = (
        "import sys, json; from tasks.corpus.tokenizer import train_bpe; "
        "from tasks.corpus.params import TokenizerParams; "
        "texts = json.load(sys.stdin); "
        "sys.stdout.buffer.write(train_bpe(texts, TokenizerParams(vocab_size=300)).to_bytes())"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(TEXTS).encode(),
        capture_output=True,
        check=True,
        env={"TOKENIZERS_PARALLELISM": parallel, "PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
    )

    assert result.stdout == tokenizer.to_bytes()


def test_too_little_text_is_refused() -> None:
    with pytest.raises(BadTokenizer, match="too little text"):
        train_bpe(["a"], PARAMS)


def foreign(vocab_size: int = 600, **changes: object) -> dict[str, object]:
    """A tokenizer.json such as other projects publish: end mark at 0, no padding, ids of its own."""
    from tokenizers import Tokenizer as Model
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    model = Model(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(TEXTS, trainer)
    model.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    model.enable_truncation(4)
    spec: dict[str, object] = json.loads(model.to_str())
    return {**spec, **changes}


def test_a_foreign_tokenizer_is_adopted_with_its_ids_moved_up_by_two() -> None:
    spec = foreign()
    adopted = adopt(json.dumps(spec).encode())

    text = "the quick brown fox <|endoftext|> \u00e9 and more than four tokens"
    assert adopted.decode(adopted.encode(text)) == text
    assert adopted.vocab_size == len(spec["model"]["vocab"]) + 2  # type: ignore[index]
    quick = spec["model"]["vocab"]["\u0120quick"]  # type: ignore[index]
    assert adopted.encode(" quick").tolist() == [quick + 2]


def test_adopting_our_own_tokenizer_keeps_its_ids(tokenizer: Tokenizer) -> None:
    adopted = adopt(tokenizer.to_bytes())

    np.testing.assert_array_equal(adopted.encode(TEXTS[0]), tokenizer.encode(TEXTS[0]))


@pytest.mark.parametrize(
    "definition",
    [
        b"\xff",
        b"not json",
        b"[]",
        json.dumps({"model": {"type": "WordPiece", "vocab": {}}}).encode(),
        json.dumps({"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": None}).encode(),
    ],
)
def test_a_file_that_is_no_byte_level_bpe_is_refused(definition: bytes) -> None:
    with pytest.raises(BadTokenizer):
        adopt(definition)


def test_a_damaged_tokenizer_is_refused() -> None:
    with pytest.raises(BadTokenizer, match=r"not a tokenizer\.json"):
        adopt(json.dumps(foreign(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["x y"]})).encode())


def test_a_vocabulary_above_sixteen_bits_is_refused() -> None:
    spec = foreign()
    vocabulary = spec["model"]["vocab"]  # type: ignore[index]
    vocabulary |= {f"word{i}": i for i in range(len(vocabulary), 65_536)}

    with pytest.raises(VocabularyTooLarge, match="65538 tokens"):
        adopt(json.dumps(spec).encode())
