"""Search: candidates of all charts and the dense index, verified in the readout and ordered by the
reranker."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from store import Row, Snapshot, Store
from tasks.codec import load_codec
from tasks.errors import StaleIndex
from tasks.retrieval.charts import Charts
from tasks.retrieval.cues import CueBatch
from tasks.retrieval.dense import CodecCueEncoder, DenseIndex
from tasks.retrieval.evidence import Evidence, Sources, check_sources, gather
from tasks.retrieval.features import FEATURES
from tasks.retrieval.params import SearchParams
from tasks.retrieval.readout import Readout
from tasks.retrieval.reranker import Reranker

_AGREEMENT = FEATURES.index("agreement")
# Queries worked on at once: enough to amortise numpy's calls, few enough to stay in the cache.
_BATCH = 128


@dataclass(frozen=True, slots=True)
class Candidate:
    """An element that may hold what follows a cue.

    `offset` is the token of the element right after the cue, `agreement` the share of the cue's tokens
    equal to the decoded ones there, `score` the reranker's probability in [0, 1], and `features` (F,) the
    evidence in the order of `FEATURES`.
    """

    name: str
    version: str
    score: float
    offset: int
    agreement: float
    features: np.ndarray

    def feature(self, name: str) -> float:
        """One feature by its name."""
        return float(self.features[FEATURES.index(name)])


@dataclass(frozen=True)
class Ranked:
    """Candidates of a batch, best first within each query; one row per (query, element)."""

    query_R: np.ndarray
    element_R: np.ndarray
    offset_R: np.ndarray
    score_R: np.ndarray
    features_RF: np.ndarray


class Index:
    """The charts, dense keys and readout of one set of memories, with the reranker that orders what they
    find.

    Without a reranker the order is by agreement; without dense keys or a cue encoder the charts search
    alone.
    """

    def __init__(self, sources: Sources, reranker: Reranker | None, search: SearchParams) -> None:
        self.sources = sources
        self.reranker = reranker
        self.params = search

    @classmethod
    def open(cls, store: Store, snapshot: Snapshot | str, name: str | None = None) -> "Index":
        """The index and reranker pinned in a snapshot (given itself or by anything `Store.snapshot` takes).

        `name` is needed only where the snapshot holds several indexes. Raises ElementNotFound where it
        holds no index or no reranker, and StaleIndex where the index was built from other versions than the
        snapshot's.
        """
        pinned = store.snapshot(snapshot) if isinstance(snapshot, str) else snapshot
        prefix = f"index/{name}/" if name is not None else _only_prefix(pinned)
        rows = {part: pinned.get(prefix + part) for part in ("readout", "charts", "dense")}
        readout = Readout.from_bytes(pinned.read(rows["readout"]))
        _check_fresh(pinned, prefix, readout, rows)
        codec = load_codec(pinned.read(pinned.one("codec")))
        reranker = Reranker.from_bytes(pinned.read(pinned.one("reranker")))
        sources = Sources(
            readout,
            Charts.from_bytes(pinned.read(rows["charts"])),
            DenseIndex.from_bytes(pinned.read(rows["dense"])),
            CodecCueEncoder(codec),
        )
        check_sources(sources, codec)
        return cls(sources, reranker, reranker.search)

    @property
    def readout(self) -> Readout:
        """The decoded tokens of the indexed memories."""
        return self.sources.readout

    @property
    def vocab_size(self) -> int:
        """Token ids that a cue may hold."""
        return len(self.sources.charts.bag.idf_V)

    def search(self, cue_ids: np.ndarray, k: int) -> list[Candidate]:
        """The k best elements for one cue of token ids, best first; see `search_many`."""
        return self.search_many([cue_ids], k)[0]

    def search_many(self, cues: Sequence[np.ndarray], k: int) -> list[list[Candidate]]:
        """The k best elements for each cue, best first. Equal scores keep the elements' name order.

        A cue's answer does not depend on the cues beside it. Only the last `max_cue_tokens` tokens of a cue
        count. Raises BadQuery for an empty cue or an id outside the vocabulary.
        """
        answers: list[list[Candidate]] = []
        for begin in range(0, len(cues), _BATCH):
            batch = self.batch(cues[begin : begin + _BATCH])
            answers += self._candidates(self.rank(batch), len(batch), k)
        return answers

    def batch(self, cues: Sequence[np.ndarray]) -> CueBatch:
        """Cues laid out for `rank` and `evidence`."""
        return CueBatch.of(cues, self.vocab_size, self.params.max_cue_tokens)

    def evidence(self, cues: CueBatch) -> Evidence:
        """All alignments of a batch with their features, unordered."""
        return gather(cues, self.sources, self.params)

    def rank(self, cues: CueBatch) -> Ranked:
        """Candidates of one batch of cues, scored and ordered."""
        if not len(self.readout):
            none = np.empty(0, dtype=np.int64)
            return Ranked(none, none, none, none.astype(np.float64), np.empty((0, len(FEATURES))))
        evidence = self.evidence(cues)
        found, features_AF = evidence.alignments, evidence.features_AF
        agreement_A = features_AF[:, _AGREEMENT]
        logit_A = agreement_A if self.reranker is None else self.reranker(features_AF)
        score_A = agreement_A if self.reranker is None else 1 / (1 + np.exp(-logit_A))
        order = np.lexsort((found.diagonal_A, found.element_A, -agreement_A, -logit_A, found.query_A))
        pair_A = found.query_A[order] * len(self.readout) + found.element_A[order]
        # The first of an element's alignments in this order is its best.
        _, first = np.unique(pair_A, return_index=True)
        kept = order[np.sort(first)]
        return Ranked(
            query_R=found.query_A[kept],
            element_R=found.element_A[kept],
            offset_R=evidence.verified.offset_A[kept],
            score_R=score_A[kept],
            features_RF=features_AF[kept],
        )

    def _candidates(self, ranked: Ranked, count: int, k: int) -> list[list[Candidate]]:
        names, versions = self.readout.names, self.readout.versions
        first_Q1 = np.searchsorted(ranked.query_R, np.arange(count + 1))
        place_R = np.arange(len(ranked.query_R)) - first_Q1[ranked.query_R]
        kept = np.flatnonzero(place_R < k)
        answers: list[list[Candidate]] = [[] for _ in range(count)]
        for query, element, score, offset, agreement, features_F in zip(
            ranked.query_R[kept].tolist(),
            ranked.element_R[kept].tolist(),
            ranked.score_R[kept].tolist(),
            ranked.offset_R[kept].tolist(),
            ranked.features_RF[kept, _AGREEMENT].tolist(),
            ranked.features_RF[kept],
            strict=True,
        ):
            answers[query].append(
                Candidate(names[element], versions[element], score, offset, agreement, features_F)
            )
        return answers


def _only_prefix(snapshot: Snapshot) -> str:
    """`index/<name>/` of the snapshot's only index; `Snapshot.get` explains where it holds none."""
    prefixes = sorted({row.name.rpartition("/")[0] + "/" for row in snapshot.rows("index")})
    if len(prefixes) > 1:
        listed = ", ".join(prefix.removeprefix("index/").rstrip("/") for prefix in prefixes)
        raise StaleIndex(
            f"snapshot {snapshot.id[:12]} holds several indexes ({listed}); name the one to open"
        )
    return prefixes[0] if prefixes else "index/main/"


def _check_fresh(snapshot: Snapshot, prefix: str, readout: Readout, rows: dict[str, Row]) -> None:
    pinned = {row.name: row.version for row in snapshot.rows("memory")}
    indexed = dict(zip(readout.names, readout.versions, strict=True))
    gone = sum(name not in pinned for name in indexed)
    new = sum(name not in indexed for name in pinned)
    changed = sum(pinned.get(name, version) != version for name, version in indexed.items())
    again = "build the indexes from this snapshot and pin the result"
    if gone or new or changed:
        raise StaleIndex(
            f"{prefix.rstrip('/')} does not fit snapshot {snapshot.id[:12]}: of its memories {changed} have "
            f"another version, {gone} are not in the snapshot, {new} of the snapshot's are not in it; {again}"
        )
    if rows["readout"].version not in rows["charts"].requires:
        raise StaleIndex(
            f"{prefix}charts was made from another readout than snapshot {snapshot.id[:12]} holds; {again}"
        )
