"""Byte-level BPE tokens: every text round-trips, every id fits sixteen bits, 0 is padding, 1 ends a text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tasks.corpus.params import MAX_VOCABULARY, TokenizerParams
from tasks.errors import BadTokenizer, VocabularyTooLarge

PAD = 0
EOS = 1
PAD_TOKEN = "<pad>"  # noqa: S105
EOS_TOKEN = "<eos>"  # noqa: S105

Ids = npt.NDArray[np.uint16]


class Tokenizer:
    """Text to token ids and back.

    `decode(encode(text)) == text` for every text, also one that spells `<eos>`: special tokens are never
    recognised in text.
    """

    def __init__(self, definition: str) -> None:
        """Use a tokenizer.json; raises BadTokenizer or VocabularyTooLarge when it does not fit."""
        import tokenizers

        self._definition = definition
        try:
            self._model = tokenizers.Tokenizer.from_str(definition)
        except Exception as error:  # the library raises bare Exception for any malformed file
            raise BadTokenizer(
                f"not a tokenizer.json ({str(error)[:120]}); give a byte-level BPE file"
            ) from error
        self._model.encode_special_tokens = True
        self._model.no_padding()
        self._model.no_truncation()
        self.vocab_size: int = self._model.get_vocab_size(with_added_tokens=True)
        """Number of ids, special tokens included."""
        if self.vocab_size > MAX_VOCABULARY:
            raise VocabularyTooLarge(
                f"the tokenizer has {self.vocab_size} tokens and Binary16 can tell {MAX_VOCABULARY} apart; "
                "use a smaller vocabulary"
            )
        if (self._model.token_to_id(PAD_TOKEN), self._model.token_to_id(EOS_TOKEN)) != (PAD, EOS):
            raise BadTokenizer(
                f"the tokenizer does not have {PAD_TOKEN} at id {PAD} and {EOS_TOKEN} at id {EOS}"
            )
        if max(self._model.get_vocab(with_added_tokens=True).values()) != self.vocab_size - 1:
            raise BadTokenizer(f"the ids of the tokenizer are not 0 to {self.vocab_size - 1}")

    def encode(self, text: str) -> Ids:
        """Token ids of a text, uint16, without special tokens."""
        return np.asarray(self._model.encode(text, add_special_tokens=False).ids, dtype=np.uint16)

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        """As `encode` for many texts, on all threads of the tokenizer library."""
        batch = self._model.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.asarray(encoding.ids, dtype=np.uint16) for encoding in batch]

    def decode(self, ids: npt.NDArray[np.integer[Any]] | Sequence[int]) -> str:
        """The text of token ids; padding and end marks vanish, half a character becomes U+FFFD."""
        text: str = self._model.decode([int(i) for i in ids], skip_special_tokens=True)
        return text

    def pieces(self, ids: npt.NDArray[np.integer[Any]] | Sequence[int]) -> list[str]:
        """The text of each token, which joined are `decode(ids)`; a character spread over several tokens
        belongs to the last of them.
        """
        pieces: list[str] = []
        waiting: list[int] = []
        for count, token in enumerate(ids, start=1):
            waiting.append(int(token))
            text = self.decode(waiting)
            unfinished = text.endswith("\ufffd") and count < len(ids)
            pieces.append("" if unfinished else text)
            if not unfinished:
                waiting.clear()
        return pieces

    def to_bytes(self) -> bytes:
        """The tokenizer.json as UTF-8: the payload of its element."""
        return self._definition.encode("utf-8")

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Tokenizer":
        """Load a payload written by `to_bytes`; JSON only, nothing in it is executed."""
        try:
            return cls(payload.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise BadTokenizer("the tokenizer file is not UTF-8 JSON; give a tokenizer.json") from error


def train_bpe(texts: Iterable[str], params: TokenizerParams) -> Tokenizer:
    """Learn a byte-level BPE vocabulary; equal texts in equal order give equal bytes.

    Raises BadTokenizer when the texts do not yield a single merge, because then nothing was learned.
    """
    from tokenizers import Tokenizer as Model
    from tokenizers import decoders, models, pre_tokenizers, trainers

    model = Model(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=params.vocab_size,
        min_frequency=params.min_frequency,
        special_tokens=[PAD_TOKEN, EOS_TOKEN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(iter(texts), trainer)
    tokenizer = Tokenizer(model.to_str(pretty=False))
    if tokenizer.vocab_size <= 2 + 256:
        raise BadTokenizer("the even shards hold too little text to learn a vocabulary; give a larger corpus")
    return tokenizer
