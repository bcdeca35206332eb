"""An index with what was added and removed since it was made, laid over it without a copy.

Elements of the index keep their numbers and stream positions, added ones get those that follow. What was
removed stays in the arrays and is passed over.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from tasks.retrieval.charts import Bag, Chart, Charts, Hits
from tasks.retrieval.dense import DenseIndex
from tasks.retrieval.params import ChartParams
from tasks.retrieval.readout import Readout


@dataclass(frozen=True)
class LayeredReadout(Readout):
    """tokens_N is the index's stream, which added_N (uint16) goes on; all else is of both. kept_E (bool)
    tells what was not removed."""

    added_N: np.ndarray
    kept_E: np.ndarray

    @property
    def size(self) -> int:
        """Tokens of both streams, those of removed elements among them."""
        return len(self.tokens_N) + len(self.added_N)

    def at(self, position: np.ndarray) -> np.ndarray:
        """The tokens at stream positions, in their shape."""
        before = len(self.tokens_N)
        found: np.ndarray = self.tokens_N[np.minimum(position, before - 1)]
        beyond = position >= before
        found[beyond] = self.added_N[position[beyond] - before]
        return found

    def tokens(self, element: int) -> np.ndarray:
        """Decoded tokens of one element."""
        before = len(self.tokens_N)
        begin, end = self.start_E1[element], self.start_E1[element + 1]
        view: np.ndarray = (
            self.tokens_N[begin:end] if begin < before else self.added_N[begin - before : end - before]
        )
        return view

    def to_bytes(self) -> bytes:
        """Refused: a payload holds one stream."""
        _compact_first()


@dataclass(frozen=True)
class LayeredChart(Chart):
    """A chart with another over the tokens from position `shift` on; hits in removed elements are left
    out, though counted as found."""

    added: Chart
    shift: int
    readout: LayeredReadout

    def probe(self, key_Q: np.ndarray, cap: int) -> Hits:
        """The first `cap` postings of each key in either chart."""
        below, above = super().probe(key_Q, cap), self.added.probe(key_Q, cap)
        found_Q = np.zeros(len(key_Q), dtype=np.int64)
        found_Q[below.probe_H] += below.found_H
        more_Q = np.zeros(len(key_Q), dtype=np.int64)
        more_Q[above.probe_H] += above.found_H
        probe_H = np.concatenate([below.probe_H, above.probe_H])
        position_H = np.concatenate([below.position_H, above.position_H + self.shift])
        kept_H = self.readout.kept_E[self.readout.element_of(position_H)]
        probe_H = probe_H[kept_H]
        return Hits(probe_H, position_H[kept_H], (found_Q + more_Q)[probe_H])


@dataclass(frozen=True)
class LayeredBag(Bag):
    """A bag with another over the elements from number `shift` on. Damping below zero marks what was
    removed; idf_V is that of both; common_V (bool) are the tokens of no distinction below."""

    added: Bag
    shift: int
    common_V: np.ndarray

    def held(self, token: int) -> np.ndarray:
        """The elements that hold a token, none for a token of no distinction."""
        if self.common_V[token]:
            return super().held(token)
        return np.concatenate([super().held(token), self.added.held(token) + np.uint32(self.shift)])


@dataclass(frozen=True)
class LayeredCharts(Charts):
    """The four sketches, each in two layers."""

    def to_bytes(self) -> bytes:
        """Refused: a payload holds one layer."""
        _compact_first()


@dataclass(frozen=True)
class LayeredDense(DenseIndex):
    """Dense keys with those of added elements, brought to the same centre."""

    below: DenseIndex
    added: DenseIndex
    kept_E: np.ndarray

    def __len__(self) -> int:
        return len(self.kept_E)

    def keys(self, element_A: np.ndarray) -> np.ndarray:
        """The keys of these elements."""
        before = len(self.key_EC)
        key_AC: np.ndarray = self.key_EC[np.minimum(element_A, before - 1)]
        beyond = element_A >= before
        key_AC[beyond] = self.added.key_EC[element_A[beyond] - before]
        return key_AC

    def search(self, query_QC: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and numbers of the k nearest of each query among what was not removed."""
        width = min(k, int(self.kept_E.sum()))
        removed = int((~self.kept_E).sum())
        parts = [self.below.search(query_QC, k + removed)]
        if len(self.added):
            cosine_Qk, element_Qk = self.added.search(query_QC, k + removed)
            parts.append((cosine_Qk, element_Qk + len(self.key_EC)))
        cosine_Qm, element_Qm = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
        cosine_Qm[~self.kept_E[element_Qm]] = -np.inf
        order_Qm = np.lexsort((element_Qm, -cosine_Qm), axis=1)[:, :width]
        return np.take_along_axis(cosine_Qm, order_Qm, 1), np.take_along_axis(element_Qm, order_Qm, 1)

    def to_bytes(self) -> bytes:
        """Refused: a payload holds one layer."""
        _compact_first()


def layer_charts(base: Charts, added: Charts, readout: LayeredReadout, idf_V: np.ndarray) -> LayeredCharts:
    """Lay the charts of added elements over those of an index; `idf_V` (float32) is that of both."""
    params: ChartParams = base.params
    shift = len(readout.tokens_N)

    def chart(below: Chart, above: Chart) -> LayeredChart:
        return LayeredChart(below.key_K, below.start_K1, below.position_P, above, shift, readout)

    damping_E = np.concatenate([base.bag.damping_E, added.bag.damping_E])
    damping_E[~readout.kept_E] = -1.0
    elements = len(base.bag.damping_E)
    common_V = (np.diff(base.bag.start_V1) == 0) & (base.bag.idf_V < np.log(elements + 1))
    bag = LayeredBag(base.bag.start_V1, base.bag.element_P, idf_V, damping_E, added.bag, elements, common_V)
    return LayeredCharts(
        params,
        prefix=chart(base.prefix, added.prefix),
        window=chart(base.window, added.window),
        ngram=chart(base.ngram, added.ngram),
        bag=bag,
    )


def _compact_first() -> NoReturn:
    raise TypeError("an index with changes laid over it has no payload of its own; compact it first")
