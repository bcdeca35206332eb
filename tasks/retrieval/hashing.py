"""64-bit hashes of token n-grams and their winnowing, vectorised over a whole token stream.

A hash is sum_j (token_j + 1) B^(n-1-j) modulo 2^64, finished by the SplitMix64 mixer so that its order is
as good as random. The sum of a run of n + m tokens is hash_n B^m + hash_m, so n-grams cost O(log n) passes
over the stream.
"""

import numpy as np

_BASE = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_LAST = np.uint64(_MASK)


def ngram_hashes(tokens_N: np.ndarray, n: int) -> np.ndarray:
    """Hashes (uint64) of the N - n + 1 runs of n tokens (any integer dtype); empty where N < n."""
    count = len(tokens_N) - n + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    power = tokens_N.astype(np.uint64) + np.uint64(1)
    power_length = 1
    total: np.ndarray | None = None
    total_length = 0
    remaining = n
    while True:
        if remaining & 1:
            total = power if total is None else _joined(total, total_length, power, power_length)
            total_length += power_length
        remaining >>= 1
        if not remaining:
            break
        power = _joined(power, power_length, power, power_length)
        power_length *= 2
    assert total is not None
    return _mixed(total[:count])


def _joined(left: np.ndarray, left_length: int, right: np.ndarray, right_length: int) -> np.ndarray:
    count = len(right) - left_length
    shift = np.uint64(pow(_BASE, right_length, 1 << 64))
    joined: np.ndarray = left[:count] * shift + right[left_length:]
    return joined


def _mixed(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = value ^ (value >> np.uint64(31))
    return mixed


def inside(start_E1: np.ndarray, n: int) -> np.ndarray:
    """Which of the stream's N positions (bool) begin a run of n tokens that stays inside its element."""
    inside_N = np.zeros(int(start_E1[-1]), dtype=np.int8)
    length_E = np.diff(start_E1)
    fits = length_E >= n
    opens = start_E1[:-1][fits]
    closes = start_E1[1:][fits] - n + 1
    edge_N1 = np.zeros(len(inside_N) + 1, dtype=np.int8)
    np.add.at(edge_N1, opens, 1)
    np.add.at(edge_N1, closes, -1)
    return np.cumsum(edge_N1[:-1], dtype=np.int8).astype(bool)


def winnow(hashes_M: np.ndarray, valid_M: np.ndarray, width: int) -> np.ndarray:
    """Positions (int64, ascending) that are the rightmost minimum of some window of `width` hashes.

    Invalid positions are never chosen. With width <= n no window reaches valid positions of two elements,
    because n - 1 invalid positions part them: what is chosen in an element does not depend on its
    neighbours. Any run of width valid hashes holds a chosen one.
    """
    if not len(hashes_M):
        return np.empty(0, dtype=np.int64)
    pad = np.full(width - 1, _LAST)
    padded = np.concatenate([pad, np.where(valid_M, hashes_M, _LAST), pad])
    windows = len(padded) - width + 1
    lowest = padded[:windows].copy()
    chosen = np.arange(windows, dtype=np.int64)
    for shift in range(1, width):
        other = padded[shift : shift + windows]
        better = other <= lowest
        lowest[better] = other[better]
        chosen[better] = np.flatnonzero(better) + shift
    chosen -= width - 1
    chosen = np.unique(chosen)
    chosen = chosen[(chosen >= 0) & (chosen < len(hashes_M))]
    kept: np.ndarray = chosen[valid_M[chosen]]
    return kept
