"""Tokenizers from elsewhere: taken over if they give every text back, refused otherwise."""

import json
from typing import Any

from tasks.corpus.tokenizer import EOS, EOS_TOKEN, PAD, PAD_TOKEN, Tokenizer
from tasks.errors import BadTokenizer

_CUTTING = frozenset({"Digits", "Punctuation", "Split", "UnicodeScripts"})
"""Steps before the mapping of bytes that only cut a text, unless they are told to remove what they find."""

PROBES = (
    "".join(map(chr, range(0x20, 0x7F))),
    "".join(map(chr, range(0x20))) + "\x7f" + "".join(map(chr, range(0x80, 0x100))),
    " leading, trailing ",
    "it's we'll I'D 12345 3.14e-10 x=y; #!/bin/sh <|endoftext|> <pad> [UNK] </w> \u0120\u010a\u2581",
    "  two\t\ttabs \r\n\n\n lines\x0b\x0c \u00a0\u2003\u3000\u2028 \t \n  ",
    "e\u0301 \u00e9 \ufb01 \u212b \uff21 \ufeff \u200d \u202e",
    "\u4e2d\u6587 \u65e5\u672c\u8a9e\u306e\u6587 \ud55c\uad6d\uc5b4",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea \U00020bb7\U000e0001\U0010ffff",
)
"""Texts that a lossy step changes: all of ASCII and Latin-1, white space, composition, scripts, emoji."""


def adopt(definition: bytes) -> Tokenizer:
    """Make a byte-level BPE tokenizer.json from elsewhere usable here.

    Its tokens keep their order and are numbered from two, because <pad> and <eos> take 0 and 1; a file that
    has these there and no gaps keeps its ids. Bytes that it has no token for, as files learned without a full
    alphabet lack some, get one each at the end. What would make encoding random or lossy, or adds tokens to
    those of the model, is dropped: normalizer, post-processor, padding, truncation, dropout, added tokens.

    Raises BadTokenizer for a file that does not give every text back, VocabularyTooLarge for one with more
    tokens than sixteen bits can tell apart.
    """
    try:
        spec = json.loads(definition.decode("utf-8"))
        model = dict(spec["model"])
        vocabulary = _ranked(model["vocab"])
        kind = model.get("type", "BPE")
        fault = _fault(spec, model) if kind == "BPE" else f"is {kind}, not byte-level BPE"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadTokenizer("the file is not a tokenizer.json; give a byte-level BPE tokenizer") from error
    if fault:
        raise BadTokenizer(
            f"the tokenizer {fault}; only byte-level BPE that gives every text back can be used"
        )
    model.update(vocab=_with_all_bytes(vocabulary), dropout=None, unk_token=None)
    spec.update(
        model=model,
        added_tokens=[_special(PAD, PAD_TOKEN), _special(EOS, EOS_TOKEN)],
        decoder={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        **dict.fromkeys(("normalizer", "post_processor", "truncation", "padding")),
    )
    tokenizer = Tokenizer(json.dumps(spec, ensure_ascii=False, separators=(",", ":")))
    if (lost := first_lost(tokenizer)) is not None:
        raise BadTokenizer(
            f"the tokenizer does not give back a text such as {lost[:24]!a}; only byte-level BPE that gives "
            "every text back can be used"
        )
    return tokenizer


def first_lost(tokenizer: Tokenizer) -> str | None:
    """The first probe that a tokenizer does not give back, None if it gives back all of them."""
    return next((probe for probe in PROBES if tokenizer.decode(tokenizer.encode(probe)) != probe), None)


def _ranked(vocabulary: dict[str, int]) -> dict[str, int]:
    """Number tokens from 2 in the order of their ids, which may have gaps; <pad> and <eos> are 0 and 1."""
    others = [token for token in vocabulary if token not in (PAD_TOKEN, EOS_TOKEN)]
    if not all(type(vocabulary[token]) is int for token in others):
        raise ValueError("ids that are no numbers")
    ranked = sorted(others, key=lambda token: (vocabulary[token], token))
    return {PAD_TOKEN: PAD, EOS_TOKEN: EOS} | {token: rank for rank, token in enumerate(ranked, start=2)}


def _with_all_bytes(vocabulary: dict[str, int]) -> dict[str, int]:
    """The vocabulary with a token for each of the 256 bytes; those that it lacks come last, sorted."""
    from tokenizers import pre_tokenizers

    missing = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - vocabulary.keys())
    return vocabulary | {letter: number for number, letter in enumerate(missing, start=len(vocabulary))}


def _fault(spec: dict[str, Any], model: dict[str, Any]) -> str | None:
    """Why a BPE tokenizer would lose text, as the end of a sentence that starts with "the tokenizer"."""
    step = spec.get("pre_tokenizer") or {}
    steps = step.get("pretokenizers", [step])
    maps = [s for s in steps if s.get("type") == "ByteLevel"]
    if len(maps) != 1:
        return "does not map bytes to letters exactly once, so it is not byte-level"
    if maps[0].get("add_prefix_space"):
        return "puts a space before every text"
    for cut in steps:
        if cut not in maps and (cut.get("type") not in _CUTTING or cut.get("behavior") == "Removed"):
            return f"removes or replaces text (its step {cut.get('type')})"
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return "marks the begin or end of words in its tokens"
    return None


def _special(number: int, content: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": True}
