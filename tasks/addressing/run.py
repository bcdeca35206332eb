"""Asking every searcher the same cues, whole and changed."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.addressing.kinds import Kind
from tasks.addressing.params import AddressingParams
from tasks.addressing.rivals import rival_counts
from tasks.addressing.samples import AddressingSample, Asked, judge
from tasks.corpus import Tokenizer
from tasks.progress import Progress, silent
from tasks.retrieval import (
    NO_TOKEN,
    BM25Search,
    CueTask,
    DenseSearch,
    ElementSearch,
    Index,
    Searcher,
    changed_cues,
)

CHARTS, DENSE, BM25 = "charts", "dense", "bm25"
_GAP = " [...] "
_AT_ONCE = 256


@dataclass(frozen=True)
class Rates:
    """How fast a searcher is on this machine: queries per second (many at once), milliseconds of one query
    alone. A baseline's time is that of its ranking, without laying cues over what it finds."""

    queries: int
    queries_per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class AddressingEvaluator:
    """The searchers by name, and the documents' own token ids that same-text credit is judged on."""

    searchers: Mapping[str, Searcher]
    texts: Mapping[str, NDArray[np.uint16]]
    tokenizer: Tokenizer
    params: AddressingParams

    @classmethod
    def of(
        cls,
        index: Index,
        texts: Mapping[str, NDArray[np.uint16]],
        tokenizer: Tokenizer,
        params: AddressingParams,
    ) -> "AddressingEvaluator":
        """The charts with their reranker, and the dense and lexical baselines over the same readout."""
        lexical = BM25Search(index, k1=params.bm25_k1, b=params.bm25_b)
        return cls({CHARTS: index, DENSE: DenseSearch(index), BM25: lexical}, texts, tokenizer, params)

    def run(
        self, tasks: Mapping[Kind, Sequence[CueTask]], progress: Progress = silent
    ) -> tuple[list[AddressingSample], dict[str, dict[str, dict[str, float]]]]:
        """Samples by share of changed tokens, searcher and task; and rates by searcher and share.

        Every searcher is asked the very same cues. `progress` counts samples.
        """
        samples: list[AddressingSample] = []
        rates: dict[str, dict[str, dict[str, float]]] = {name: {} for name in self.searchers}
        rows = self._ask(tasks)
        total = sum(map(len, rows.values())) * len(self.searchers)
        for share, asked in rows.items():
            for name, searcher in self.searchers.items():
                for begin in range(0, len(asked), _AT_ONCE):
                    chosen = asked[begin : begin + _AT_ONCE]
                    found = searcher.search_many([one.cue for one in chosen], self.params.candidates)
                    samples += [
                        judge(one, name, candidates, self.texts)
                        for one, candidates in zip(chosen, found, strict=True)
                    ]
                    progress(len(samples), total)
                step = -(-len(asked) // self.params.timed_queries)
                rates[name][f"{share:g}"] = asdict(self._time(searcher, [a.cue for a in asked[::step]]))
        return samples, rates

    def _ask(self, tasks: Mapping[Kind, Sequence[CueTask]]) -> dict[float, list[Asked]]:
        """The cues as they are asked, by share of changed tokens."""
        shares = self.params.corruption
        asked: dict[float, list[Asked]] = {share: [] for share in shares}
        draw = np.random.default_rng([self.params.seed, len(Kind)])
        for kind, group in tasks.items():
            for task, rivals in zip(group, rival_counts(group, self.texts), strict=True):
                answer = self.tokenizer.decode(task.answer)
                name = f"{task.name}/{kind}/{task.offset}"
                changed = changed_cues(task.cue, shares, self.tokenizer.vocab_size, draw)
                for share, cue in zip(shares, changed, strict=True):
                    text = self._text(cue)
                    asked[share].append(Asked(name, kind.value, task, rivals, share, cue, text, answer))
        return asked

    def _text(self, cue: NDArray[np.int64]) -> str:
        """A cue as text, its gap marked."""
        gap = np.flatnonzero(cue == NO_TOKEN)
        if not len(gap):
            return self.tokenizer.decode(cue)
        return self.tokenizer.decode(cue[: gap[0]]) + _GAP + self.tokenizer.decode(cue[gap[-1] + 1 :])

    def _time(self, searcher: Searcher, cues: list[NDArray[np.int64]]) -> Rates:
        ranked = searcher.nearest if isinstance(searcher, ElementSearch) else searcher.search_many
        began = time.perf_counter()
        ranked(cues, self.params.candidates)
        together = time.perf_counter() - began
        milliseconds = []
        for cue in cues:
            began = time.perf_counter()
            ranked([cue], self.params.candidates)
            milliseconds.append(1000 * (time.perf_counter() - began))
        p50, p99 = np.percentile(milliseconds, [50, 99])
        return Rates(len(cues), len(cues) / together, float(p50), float(p99))
