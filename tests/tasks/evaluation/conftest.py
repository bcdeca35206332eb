"""Real documentation, a codec that copies untrained, and an untrained core that copies what is attached."""

from collections.abc import Sequence
from dataclasses import dataclass
from pydoc_data.topics import topics

import numpy as np
import pytest

from tasks.assembly import (
    AssemblyParams,
    CellTable,
    CoreArchitecture,
    LanguageStream,
    ResidualCore,
    TokenTable,
)
from tasks.assembly import new_core as make_core
from tasks.codec import Codec, blocks
from tasks.corpus import EOS, Tokenizer, TokenizerParams, train_bpe
from tasks.evaluation import AttachmentTask, EvaluationParams, EvidenceReader, make_tasks
from tests.copied_memories import VOCABULARY, copying_codec
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

PARAMS = EvaluationParams(
    prefix_tasks=12, quote_tasks=24, cue_tokens=16, target_tokens=4, resamples=500, language_tokens=500
)


@dataclass(frozen=True)
class Hit:
    """What a retriever answers."""

    name: str
    offset: int


class ExactMatch:
    """Finds the first place where a cue's tokens stand in a document, by comparing all of them."""

    def __init__(self, texts: dict[str, np.ndarray]) -> None:
        self.texts = texts

    def search_many(self, cues: Sequence[np.ndarray], k: int) -> list[list[Hit]]:
        return [
            [hit for hit in (self._look(cue, name) for name in sorted(self.texts)) if hit][:k] for cue in cues
        ]

    def _look(self, cue: np.ndarray, name: str) -> Hit | None:
        windows = np.lib.stride_tricks.sliding_window_view(self.texts[name], len(cue))
        places = np.flatnonzero((windows == cue).all(1))
        return Hit(name, int(places[0]) + len(cue)) if len(places) else None


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_bpe(topics.values(), TokenizerParams(vocab_size=VOCABULARY))


@pytest.fixture(scope="session")
def texts(tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Token ids of twenty documents by element name."""
    chosen = sorted(name for name, text in topics.items() if 800 <= len(text) <= 4000)[:20]
    return {f"memory/{name}": tokenizer.encode(topics[name]) for name in chosen}


@pytest.fixture(scope="session")
def codec() -> Codec:
    """A codec whose cells are its tokens' own codes, so that it reads nearly every token back untrained."""
    return copying_codec()


@pytest.fixture(scope="session")
def core(codec: Codec, texts: dict[str, np.ndarray]) -> ResidualCore:
    params = AssemblyParams(architecture=CoreArchitecture(width=96, iterations=2, hidden=32))
    language = LanguageStream(list(texts.values()), end=EOS, params=params)
    made = make_core(params, codec, language)
    for parameter in made.parameters():
        parameter.requires_grad_(False)
    return made.eval()


@pytest.fixture(scope="session")
def tasks(texts: dict[str, np.ndarray]) -> list[AttachmentTask]:
    return make_tasks(texts, PARAMS)


@pytest.fixture(scope="session")
def reader(codec: Codec, core: ResidualCore, texts: dict[str, np.ndarray]) -> EvidenceReader:
    names = sorted(texts)
    cells = [codec.encode(blocks(texts[name], 16)[0]) for name in names]
    return EvidenceReader(
        CellTable(codec, cells, [len(texts[name]) for name in names]),
        TokenTable([texts[name] for name in names]),
        {name: place for place, name in enumerate(names)},
        {name: 1000 + place for place, name in enumerate(names)},
        core.identity,
        margin=4.0,
        seed=3,
    )
