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
    own_M = padded[width - 1 : width - 1 + len(hashes_M)]
    # Windows i to i + width - 1 hold hash i. None of their minima is above it, so it is one of them where it
    # equals their maximum.
    lowest_W = _sliding(np.minimum, padded, width)
    found = np.flatnonzero((_sliding(np.maximum, lowest_W, width) == own_M) & valid_M)
    next_F = _next_equal(padded, found + width - 1, width)
    repeated = np.flatnonzero(next_F < width)
    hash_R = own_M[found[repeated]]
    rightmost_R = np.zeros(len(repeated), dtype=bool)
    for later in range(width - 1):
        ends_before = later < next_F[repeated]
        rightmost_R |= ends_before & (lowest_W[found[repeated] + later] == hash_R)
    kept_F = np.ones(len(found), dtype=bool)
    kept_F[repeated] = rightmost_R
    chosen: np.ndarray = found[kept_F]
    return chosen


def _sliding(extremum: np.ufunc, values_N: np.ndarray, width: int) -> np.ndarray:
    """The least or greatest of every `width` consecutive values, by spans that double."""
    span = 1
    while 2 * span <= width:
        values_N = extremum(values_N[: len(values_N) - span], values_N[span:])
        span *= 2
    rest = width - span
    sliding: np.ndarray = extremum(values_N[: len(values_N) - rest], values_N[rest:])
    return sliding


def _next_equal(values_N: np.ndarray, place_F: np.ndarray, width: int) -> np.ndarray:
    """How far after each place the same value stands again, `width` where it does not before that."""
    next_F = np.full(len(place_F), width)
    for shift in range(width - 1, 0, -1):
        next_F[values_N[place_F + shift] == values_N[place_F]] = shift
    return next_F
