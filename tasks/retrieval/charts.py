"""The fixed sketches of addressing: prefix, sliding window, n-gram and token bag (FEM-ASM, addressing).

A chart is a sorted array of 64-bit keys with their postings; a posting is a position in the readout's token
stream, which also names its element. All arrays are flat and read-only, so they may stay in a mapped file,
and a store may hold several independent segments of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tasks.retrieval import arrays
from tasks.retrieval.hashing import inside, ngram_hashes, winnow
from tasks.retrieval.params import ChartParams

_WHAT = "retrieval charts"
_HASHED = ("prefix", "window", "ngram")


@dataclass(frozen=True)
class Hits:
    """Postings found: `probe_H` (int64) numbers the probed keys, `position_H` (int64) is where, `found_H`
    how many postings the key has in all (before the cap)."""

    probe_H: np.ndarray
    position_H: np.ndarray
    found_H: np.ndarray


@dataclass(frozen=True)
class Chart:
    """Key k of key_K (uint64, ascending, unique) has postings position_P[start_K1[k]:start_K1[k + 1]]
    (uint32)."""

    key_K: np.ndarray
    start_K1: np.ndarray
    position_P: np.ndarray

    @classmethod
    def of(cls, key_P: np.ndarray, position_P: np.ndarray) -> "Chart":
        """The chart of one key per posting; a key keeps its postings in the order given."""
        order = np.argsort(key_P, kind="stable")
        sorted_P = key_P[order]
        first = np.flatnonzero(_begins_run(sorted_P))
        start_K1 = np.append(first, len(key_P)).astype(np.uint32)
        return cls(sorted_P[first], start_K1, position_P[order].astype(np.uint32))

    def probe(self, key_Q: np.ndarray, cap: int) -> Hits:
        """The first `cap` postings of each key."""
        if not len(self.key_K) or not len(key_Q):
            empty = np.empty(0, dtype=np.int64)
            return Hits(empty, empty, empty)
        # Keys in order touch the chart in order, which matters where it is larger than the cache.
        order = np.argsort(key_Q)
        slot_Q = np.empty(len(key_Q), dtype=np.int64)
        slot_Q[order] = np.minimum(np.searchsorted(self.key_K, key_Q[order]), len(self.key_K) - 1)
        probe_F = np.flatnonzero(self.key_K[slot_Q] == key_Q)
        slot_F = slot_Q[probe_F]
        start_F = self.start_K1[slot_F].astype(np.int64)
        found_F = self.start_K1[slot_F + 1].astype(np.int64) - start_F
        owner_H, posting_H = spread(start_F, np.minimum(found_F, cap))
        position_H = self.position_P[posting_H].astype(np.int64)
        return Hits(probe_F[owner_H], position_H, found_F[owner_H])


def _begins_run(sorted_N: np.ndarray) -> np.ndarray:
    """Which of sorted values (bool) are the first of their kind."""
    first_N = np.ones(len(sorted_N), dtype=bool)
    np.not_equal(sorted_N[1:], sorted_N[:-1], out=first_N[1:])
    return first_N


def spread(start_F: np.ndarray, count_F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For ranges [start, start + count): which range each member belongs to, and the member (both int64)."""
    owner_H = np.repeat(np.arange(len(count_F)), count_F)
    before_F = np.cumsum(count_F) - count_F
    return owner_H, np.arange(len(owner_H)) - before_F[owner_H] + start_F[owner_H]


@dataclass(frozen=True)
class Bag:
    """Token v occurs in elements element_P[start_V1[v]:start_V1[v + 1]] (uint32, ascending); tokens of no
    distinction have no postings. idf_V (float32, nats) is log((E + 1) / (elements with v + 1)); damping_E
    (float32) weighs down elements that hold many different tokens and so meet any cue by chance."""

    start_V1: np.ndarray
    element_P: np.ndarray
    idf_V: np.ndarray
    damping_E: np.ndarray

    def held(self, token: int) -> np.ndarray:
        """The elements (uint32) that hold a token, none for a token of no distinction."""
        elements: np.ndarray = self.element_P[self.start_V1[token] : self.start_V1[token + 1]]
        return elements

    @classmethod
    def of(cls, tokens_N: np.ndarray, start_E1: np.ndarray, vocab_size: int, params: ChartParams) -> "Bag":
        """The inverted index of tokens that occur in few enough elements."""
        elements = len(start_E1) - 1
        element_N = np.repeat(np.arange(elements), np.diff(start_E1))
        pair_N = np.sort(tokens_N.astype(np.int64) * max(elements, 1) + element_N)
        pair_P = pair_N[_begins_run(pair_N)]  # np.unique hashes, which takes four times as long here
        token_P, element_P = np.divmod(pair_P, max(elements, 1))
        frequency_V = np.bincount(token_P, minlength=vocab_size)
        idf_V = np.log((elements + 1) / (frequency_V + 1)).astype(np.float32)
        limit = max(params.bag_common_share * elements, params.bag_common_floor)
        kept = frequency_V[token_P] <= limit
        start_V1 = np.zeros(vocab_size + 1, dtype=np.int64)
        np.cumsum(np.bincount(token_P[kept], minlength=vocab_size), out=start_V1[1:])
        tokens_E = np.bincount(element_P[kept], minlength=elements)
        share = params.bag_length_share
        damping_E = (
            1 - share + share * tokens_E / max(float(tokens_E.sum()) / max(elements, 1), 1.0)
        ) ** -0.5
        return cls(start_V1, element_P[kept].astype(np.uint32), idf_V, damping_E.astype(np.float32))


@dataclass(frozen=True)
class Charts:
    """The four sketches of one readout."""

    params: ChartParams
    prefix: Chart
    window: Chart
    ngram: Chart
    bag: Bag

    @classmethod
    def of(cls, tokens_N: np.ndarray, start_E1: np.ndarray, vocab_size: int, params: ChartParams) -> "Charts":
        """Sketch a token stream (uint16) of elements bounded by `start_E1`.

        The prefix chart holds the first tokens of an element and of each of its blocks; the window and n-gram
        charts hold winnowed runs from anywhere.
        """
        head_N = inside(start_E1, params.prefix_tokens)
        within_N = np.arange(len(tokens_N)) - np.repeat(start_E1[:-1], np.diff(start_E1))
        heads = np.flatnonzero(head_N & (within_N % params.prefix_stride == 0))
        head_hash = ngram_hashes(tokens_N, params.prefix_tokens)
        return cls(
            params,
            prefix=Chart.of(head_hash[heads], heads),
            window=_winnowed(tokens_N, start_E1, params.window_tokens, params.window_winnow),
            ngram=_winnowed(tokens_N, start_E1, params.ngram_tokens, params.ngram_winnow),
            bag=Bag.of(tokens_N, start_E1, vocab_size, params),
        )

    def to_bytes(self) -> bytes:
        """Safetensors payload; the lengths that made the keys travel with them."""
        parts = {
            "bag.start": self.bag.start_V1,
            "bag.element": self.bag.element_P,
            "bag.idf": self.bag.idf_V,
            "bag.damping": self.bag.damping_E,
        }
        for name in _HASHED:
            chart: Chart = getattr(self, name)
            parts |= {
                f"{name}.key": chart.key_K,
                f"{name}.start": chart.start_K1,
                f"{name}.position": chart.position_P,
            }
        return arrays.to_bytes(parts, what=_WHAT, record=self.params.model_dump(mode="json"))

    @classmethod
    def from_bytes(cls, payload: bytes | memoryview) -> "Charts":
        """Views into the payload; raises BadPayload where it does not hold charts."""
        parts, record = arrays.from_bytes(payload, what=_WHAT)
        with arrays.reading(_WHAT):
            made = {name: _chart(parts, name) for name in _HASHED}
            return cls(ChartParams.model_validate(record), **made, bag=_bag(parts))


def _chart(parts: Mapping[str, np.ndarray], name: str) -> Chart:
    key_K = arrays.part(parts, f"{name}.key", np.uint64, None)
    start_K1 = arrays.part(parts, f"{name}.start", np.uint32, len(key_K) + 1)
    position_P = arrays.part(parts, f"{name}.position", np.uint32, None)
    if (key_K[1:] <= key_K[:-1]).any():
        raise ValueError(f"{name}.key does not rise")
    arrays.check_bounds(start_K1, len(position_P), f"{name}.start")
    return Chart(key_K, start_K1, position_P)


def _bag(parts: Mapping[str, np.ndarray]) -> Bag:
    idf_V = arrays.part(parts, "bag.idf", np.float32, None)
    start_V1 = arrays.part(parts, "bag.start", np.int64, len(idf_V) + 1)
    element_P = arrays.part(parts, "bag.element", np.uint32, None)
    damping_E = arrays.part(parts, "bag.damping", np.float32, None)
    arrays.check_bounds(start_V1, len(element_P), "bag.start")
    arrays.check_finite(idf_V, "bag.idf")
    arrays.check_finite(damping_E, "bag.damping")
    if len(element_P) and element_P.max() >= len(damping_E):
        raise ValueError("bag.element names an element that it does not weigh")
    return Bag(start_V1, element_P, idf_V, damping_E)


def _winnowed(tokens_N: np.ndarray, start_E1: np.ndarray, length: int, width: int) -> Chart:
    hash_M = ngram_hashes(tokens_N, length)
    chosen = winnow(hash_M, inside(start_E1, length)[: len(hash_M)], width)
    return Chart.of(hash_M[chosen], chosen)
