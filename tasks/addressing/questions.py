"""Questions on paragraphs that were made memories: the hybrid beside BM25 over the paragraphs' own words."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.addressing.params import QuestionParams
from tasks.addressing.squad import QUESTIONS, Paragraph, QuestionSet
from tasks.codec import Codec
from tasks.corpus import Tokenizer
from tasks.evaluation import interval, resampled_means
from tasks.memory import MemoryParams, work_documents
from tasks.progress import Progress, silent
from tasks.retrieval import (
    SIGNALS,
    Charts,
    CodecCueEncoder,
    DenseIndex,
    Hybrid,
    Index,
    Lexicon,
    MemoryRecord,
    Readout,
    RetrievalParams,
    Signals,
    Sources,
    decode,
    words,
)

HYBRID, BM25 = "hybrid", "bm25"
FOUND_WITHIN = (1, 5)


@dataclass(frozen=True)
class QuestionSample:
    """One question, asked of one searcher; `rank` (from 1) is the place of its paragraph, `best` the first
    one."""

    question: str
    protocol: str
    searcher: str
    article: str
    paragraph: str
    rank: int
    best: str
    text: str


@dataclass(frozen=True)
class Remembered:
    """Paragraphs as memories: an index over what they decode to, and how much of them that is."""

    index: Index
    token_recall: float
    stored_bytes: int


def remember(
    paragraphs: Sequence[Paragraph],
    codec: Codec,
    tokenizer: Tokenizer,
    memory: MemoryParams,
    retrieval: RetrievalParams,
    progress: Progress = silent,
) -> Remembered:
    """Make a memory of every paragraph, as workers do, and index what the stored cells decode to.

    `progress` counts groups of blocks that a worker looked at.
    """
    ids = tokenizer.encode_many([paragraph.text for paragraph in paragraphs])
    worked = [one.memory for one in work_documents(codec, ids, memory, progress)]
    records = [
        MemoryRecord(
            paragraph.name,
            hashlib.sha256(paragraph.text.encode()).hexdigest(),
            cells.dequantise(),
            len(tokens_L),
        )
        for paragraph, cells, tokens_L in zip(paragraphs, worked, ids, strict=True)
    ]
    decoded = sorted(decode(codec, records, retrieval.readout_tile), key=lambda one: one.name)
    own = {paragraph.name: tokens_L for paragraph, tokens_L in zip(paragraphs, ids, strict=True)}
    right = sum(int((one.tokens_L == own[one.name]).sum()) for one in decoded)
    readout = Readout.of(decoded)
    charts = Charts.of(readout.tokens_N, readout.start_E1, codec.vocab_size, retrieval.charts)
    dense = DenseIndex.of(np.stack([one.key_C for one in decoded]))
    index = Index(Sources(readout, charts, dense, CodecCueEncoder(codec)), None, retrieval.search)
    values = sum(record.cells_NC.numel() for record in records)
    bits = {"bfloat16": 16, "int8": 8, "int4": 4}[memory.dtype]
    return Remembered(index, right / readout.size, values * bits // 8)


def ask(
    asked: QuestionSet, remembered: Remembered, tokenizer: Tokenizer, params: QuestionParams
) -> tuple[list[QuestionSample], dict[str, float]]:
    """Samples by searcher and question, and the weights of the hybrid's signals.

    Equal scores keep the order of paragraphs. BM25 reads the paragraphs themselves, the hybrid what their
    memories decode to.
    """
    index = remembered.index
    signals = Signals.of(index, tokenizer)
    draw = np.random.default_rng([params.seed, 0])
    hybrid = Hybrid.fit(signals, asked=params.scrambled, generator=draw)
    raw = {paragraph.name: paragraph.text for paragraph in asked.paragraphs}
    lexical = Lexicon([raw[name] for name in index.readout.names], words)
    texts = [question.text for question in asked.questions]
    samples = _samples(asked, index.readout.names, HYBRID, hybrid.scores(texts))
    samples += _samples(asked, index.readout.names, BM25, lexical.scores(texts))
    return samples, dict(zip(SIGNALS, hybrid.weight_S.tolist(), strict=True))


def summarise_questions(samples: Sequence[QuestionSample], params: QuestionParams) -> dict[str, Any]:
    """Recall at 1 and 5 and the mean reciprocal rank with intervals over articles, and the hybrid's margin.

    All figures share one resample, so the margin is paired.
    """
    searchers = list(dict.fromkeys(sample.searcher for sample in samples))
    groups = {name: [s for s in samples if s.searcher == name] for name in searchers}
    names = [*(f"recall_at_{k}" for k in FOUND_WITHIN), "reciprocal_rank"]
    value_NK = np.concatenate([_values(groups[name]) for name in searchers], axis=1)
    first = groups[searchers[0]]
    _, cluster_N = np.unique([sample.article for sample in first], return_inverse=True)
    drawn_RK = resampled_means(
        value_NK,
        cluster_N.astype(np.int64),
        resamples=params.resamples,
        generator=np.random.default_rng([params.seed, 1]),
    )
    mean_K, width = value_NK.mean(0), len(names)

    def shown(value: float, drawn_R: NDArray[np.float64]) -> dict[str, float]:
        return asdict(interval(value, drawn_R, params.confidence))

    at = {(name, f): searchers.index(name) * width + row for name in searchers for row, f in enumerate(names)}
    figures = {
        name: {f: shown(mean_K[at[name, f]], drawn_RK[:, at[name, f]]) for f in names} for name in searchers
    }
    margin = {
        f: shown(
            mean_K[at[HYBRID, f]] - mean_K[at[BM25, f]],
            drawn_RK[:, at[HYBRID, f]] - drawn_RK[:, at[BM25, f]],
        )
        for f in names
    }
    return {
        "protocol": QUESTIONS,
        "questions": len(first),
        "articles": int(cluster_N.max()) + 1,
        "figures": figures,
        "margin": margin,
    }


def _samples(
    asked: QuestionSet, names: Sequence[str], searcher: str, score_QE: NDArray[np.float64]
) -> list[QuestionSample]:
    row = {name: number for number, name in enumerate(names)}
    article = {paragraph.name: paragraph.article for paragraph in asked.paragraphs}
    samples = []
    # Rounded, because equal sums in another order differ in their last bits.
    for question, score_E in zip(asked.questions, np.round(score_QE, 9), strict=True):
        own = row[question.paragraph]
        before = int((score_E > score_E[own]).sum() + (score_E[:own] == score_E[own]).sum())
        samples.append(
            QuestionSample(
                question=question.name,
                protocol=QUESTIONS,
                searcher=searcher,
                article=article[question.paragraph],
                paragraph=question.paragraph,
                rank=before + 1,
                best=names[int(score_E.argmax())],
                text=question.text,
            )
        )
    return samples


def _values(samples: Sequence[QuestionSample]) -> NDArray[np.float64]:
    return np.array([[*(s.rank <= k for k in FOUND_WITHIN), 1 / s.rank] for s in samples], np.float64)
