"""Tokens round-trip every text, training is deterministic, and foreign tokenizers are adopted or refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.params import TokenizerParams
from tasks.corpus.tokenizer import EOS, PAD, Tokenizer, train_bpe
from tasks.errors import BadTokenizer

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
