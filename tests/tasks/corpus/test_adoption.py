"""Tokenizers from elsewhere give every text back under ids of ours, or are refused."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.adoption import adopt, first_lost
from tasks.corpus.params import MAX_VOCABULARY, TokenizerParams
from tasks.corpus.tokenizer import EOS_TOKEN, PAD_TOKEN, Tokenizer, train_bpe
from tasks.errors import BadTokenizer, VocabularyTooLarge

TEXTS = [
    "the quick brown fox jumps over the lazy dog " * 3,
    "def quick(fox): return fox.jumps",
    "lazy\n\tdog",
]
Spec = dict[str, Any]


@cache
def _trained() -> str:
    from tokenizers import Tokenizer as Model
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    model = Model(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(TEXTS, trainer)
    model.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    model.enable_truncation(4)
    return str(model.to_str())


def foreign(change: Callable[[Spec], object] = lambda spec: None) -> bytes:
    """A tokenizer.json such as other projects publish: end mark at 0, no padding, ids of its own; changed."""
    spec: Spec = json.loads(_trained())
    change(spec)
    return json.dumps(spec).encode()


def sequence(*steps: Spec) -> Spec:
    return {"type": "Sequence", "pretokenizers": list(steps)}


BYTES: Spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPLIT: Spec = {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "Isolated", "invert": False}


def test_a_foreign_tokenizer_is_adopted_with_its_ids_moved_up_by_two() -> None:
    spec = json.loads(foreign())
    adopted = adopt(foreign())

    text = "the quick brown fox <|endoftext|> \u00e9 and more than four tokens"
    assert adopted.decode(adopted.encode(text)) == text
    assert adopted.vocab_size == len(spec["model"]["vocab"]) + 2
    assert adopted.encode(" quick").tolist() == [spec["model"]["vocab"]["\u0120quick"] + 2]


def test_ids_with_gaps_are_closed_in_their_order() -> None:
    def spread(spec: Spec) -> None:
        spec["model"]["vocab"] = {token: 7 + 150 * i for token, i in spec["model"]["vocab"].items()}
        spec["added_tokens"] = []

    adopted = adopt(foreign(spread))

    assert adopted.to_bytes() == adopt(foreign()).to_bytes()
    assert int(adopted.encode(TEXTS[0]).max()) < adopted.vocab_size


def test_bytes_without_a_token_get_one_each_at_the_end() -> None:
    lacking = ["\u00fe", "\u00c0", "\u0106"]  # the letters of bytes fe, c0 and 06

    def drop(spec: Spec) -> None:
        for letter in lacking:
            del spec["model"]["vocab"][letter]

    whole, adopted = adopt(foreign()), adopt(foreign(drop))

    assert adopted.vocab_size == whole.vocab_size
    ids = adopted.encode("\x06 \u00c0").tolist()
    assert adopted.decode(ids) == "\x06 \u00c0"
    assert ids[0] == adopted.vocab_size - 1, "the last of the missing letters"
    assert adopted.encode(TEXTS[0]).max() < adopted.vocab_size - len(lacking)


def test_adopting_our_own_tokenizer_keeps_its_ids() -> None:
    own = train_bpe(TEXTS, TokenizerParams(vocab_size=300))

    adopted = adopt(own.to_bytes())

    np.testing.assert_array_equal(adopted.encode(TEXTS[0]), own.encode(TEXTS[0]))
    assert adopted.vocab_size == own.vocab_size


def _add_stripping_token(spec: Spec) -> None:
    flags = {"single_word": False, "lstrip": True, "rstrip": True, "normalized": False, "special": False}
    spec["added_tokens"].append({"id": len(spec["model"]["vocab"]), "content": "fox", **flags})


def _add_dropout(spec: Spec) -> None:
    spec["model"]["dropout"] = 0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.update(normalizer={"type": "NFC"}),
        lambda spec: spec.update(normalizer={"type": "Lowercase"}),
        lambda spec: spec.update(decoder=None),
        lambda spec: spec.update(decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}),
        lambda spec: spec.update(pre_tokenizer=sequence(SPLIT, BYTES)),
        lambda spec: spec.update(
            pre_tokenizer=sequence({"type": "Digits", "individual_digits": True}, BYTES)
        ),
        _add_stripping_token,
        _add_dropout,
    ],
    ids=["nfc", "lowercase", "no decoder", "decoder", "split", "digits", "stripping token", "dropout"],
)
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
def test_what_is_adopted_gives_every_text_back_in_one_way(
    change: Callable[[Spec], object], text: str
) -> None:
    adopted = _adopted(foreign(change))

    ids = adopted.encode(text + " fox \u00c9 ")
    assert adopted.decode(ids) == text + " fox \u00c9 "
    np.testing.assert_array_equal(ids, adopted.encode(text + " fox \u00c9 "))


@cache
def _adopted(definition: bytes) -> Tokenizer:
    return adopt(definition)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(pre_tokenizer=sequence({"type": "WhitespaceSplit"}, BYTES)), "WhitespaceSplit"),
        (lambda s: s.update(pre_tokenizer=sequence({**SPLIT, "behavior": "Removed"}, BYTES)), "step Split"),
        (
            lambda s: s.update(pre_tokenizer=sequence({"type": "Punctuation", "behavior": "Removed"}, BYTES)),
            "step Punctuation",
        ),
        (lambda s: s.update(pre_tokenizer=sequence(BYTES, BYTES)), "exactly once"),
        (lambda s: s.update(pre_tokenizer=None), "exactly once"),
        (lambda s: s.update(pre_tokenizer={**BYTES, "add_prefix_space": True}), "a space before"),
        (lambda s: s["model"].update(end_of_word_suffix="</w>"), "marks the begin or end of words"),
        (lambda s: s["model"].update(type="WordPiece"), "is WordPiece, not byte-level BPE"),
        (lambda s: s["model"].update(merges=[["nothing", "known"]]), r"not a tokenizer\.json"),
        (lambda s: s["model"]["vocab"].update(fox="many"), r"not a tokenizer\.json"),
        (lambda s: s["model"].update(vocab=["a"]), r"not a tokenizer\.json"),
        (lambda s: s.update(pre_tokenizer="ByteLevel"), r"not a tokenizer\.json"),
    ],
)
def test_a_tokenizer_that_would_lose_text_is_refused(change: Callable[[Spec], object], message: str) -> None:
    with pytest.raises(BadTokenizer, match=message) as refused:
        adopt(foreign(change))
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.update(normalizer={"type": "NFC"}),
        lambda spec: spec.update(normalizer={"type": "NFD"}),
        lambda spec: spec.update(normalizer={"type": "NFKC"}),
        lambda spec: spec.update(normalizer={"type": "Lowercase"}),
        lambda spec: spec.update(normalizer={"type": "Strip", "strip_left": True, "strip_right": True}),
        lambda spec: spec.update(pre_tokenizer={**BYTES, "add_prefix_space": True}),
        lambda spec: spec.update(pre_tokenizer=sequence({"type": "WhitespaceSplit"}, BYTES)),
        lambda spec: spec.update(pre_tokenizer=sequence({**SPLIT, "behavior": "Removed"}, BYTES)),
        lambda spec: spec.update(
            pre_tokenizer=sequence({"type": "Punctuation", "behavior": "Removed"}, BYTES)
        ),
        lambda spec: spec.update(pre_tokenizer=sequence(BYTES, BYTES)),
        lambda spec: spec.update(pre_tokenizer=None),
        lambda spec: spec.update(decoder=None),
        lambda spec: spec["model"]["vocab"].update(other=spec["model"]["vocab"].pop("\u0122")),
    ],
)
def test_every_way_to_lose_text_shows_in_a_round_trip(change: Callable[[Spec], object]) -> None:
    spec = json.loads(adopt(foreign()).to_bytes())
    spec["model"]["merges"] = []
    assert first_lost(Tokenizer(json.dumps(spec))) is None

    change(spec)

    assert first_lost(Tokenizer(json.dumps(spec))) is not None


@pytest.mark.parametrize("definition", [b"\xff", b"not json", b"[]", b'"text"', b"{}", b'{"model": []}'])
def test_a_file_that_is_no_tokenizer_is_refused(definition: bytes) -> None:
    with pytest.raises(BadTokenizer, match="give a byte-level BPE tokenizer"):
        adopt(definition)


def test_a_vocabulary_above_sixteen_bits_is_refused() -> None:
    def swell(spec: Spec) -> None:
        vocabulary = spec["model"]["vocab"]
        vocabulary |= {f"word{i}": i for i in range(len(vocabulary), MAX_VOCABULARY)}

    with pytest.raises(VocabularyTooLarge, match="65538 tokens"):
        adopt(foreign(swell))


def test_a_payload_with_ids_of_its_own_is_no_tokenizer_of_ours() -> None:
    spec = json.loads(adopt(foreign()).to_bytes())
    top = max(spec["model"]["vocab"], key=spec["model"]["vocab"].__getitem__)
    spec["model"]["vocab"][top] += 70_000

    with pytest.raises(BadTokenizer, match="the ids of the tokenizer are not 0 to"):
        Tokenizer.from_bytes(json.dumps(spec).encode())
    assert {PAD_TOKEN, EOS_TOKEN} < spec["model"]["vocab"].keys()
