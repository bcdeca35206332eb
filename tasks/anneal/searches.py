"""Searches of alpha in [0, 1.2]^L that ask for scores batch by batch and never ask for more than a budget.

Each is a generator: it yields rows of alphas (P, L) and is sent their scores (P), higher is better. The
scores alone decide how it goes on, so a search that is told the same scores again takes the same course.
"""

from collections.abc import Callable, Generator

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

from tasks.anneal.params import AnnealParams, SearchName
from tasks.shadows import MOST_ALPHA

Floats = NDArray[np.float64]
Search = Generator[Floats, Floats, None]

_RIDGE = 1e-3
_LOOKED_AT = 4_096
"""Points at which a fitted surface is read to find its best."""


def population_size(params: AnnealParams, count: int) -> int:
    """Alphas of a generation: the parameter, or 4 + 3 ln L as CMA-ES advises."""
    return params.population or 4 + int(3 * np.log(max(count, 1)))


def search(name: SearchName, params: AnnealParams, count: int) -> Search:
    """The search of that name over `count` alphas."""
    makers: dict[SearchName, Callable[[AnnealParams, int], Search]] = {
        "cma": cma,
        "naive": naive,
        "single": single,
        "line": line,
        "random": uniform,
        "quadratic": quadratic,
    }
    return makers[name](params, count)


def naive(params: AnnealParams, count: int) -> Search:
    """Full strength everywhere: alpha = 1, one evaluation."""
    yield np.ones((1, count))


def cma(params: AnnealParams, count: int) -> Search:
    """CMA-ES within bounds. Full strength comes first and counts; a last part of a generation is not told."""
    yield np.ones((1, count))
    yield from _evolve(params, count, params.evaluations - 1)


def single(params: AnnealParams, count: int) -> Search:
    """One alpha for all layers: as many values as the budget has, evenly over [0, 1.2], 1 among the first."""
    yield np.ones((1, count))
    values = np.linspace(0, MOST_ALPHA, max(0, params.evaluations - 1))
    yield from _in_batches(np.repeat(values[:, None], count, axis=1), population_size(params, count))


def line(params: AnnealParams, count: int) -> Search:
    """Two parameters, the first and the last layer's alpha, the others on the line between; by CMA-ES."""
    yield np.ones((1, count))
    depth_L = np.linspace(0, 1, count)
    inner = _evolve(params, 2, params.evaluations - 1)
    scores: Floats | None = None
    while True:
        try:
            ends_P2 = next(inner) if scores is None else inner.send(scores)
        except StopIteration:
            return
        scores = yield ends_P2[:, :1] * (1 - depth_L) + ends_P2[:, 1:] * depth_L


def uniform(params: AnnealParams, count: int) -> Search:
    """Points drawn uniformly from the box."""
    yield np.ones((1, count))
    drawn = np.random.default_rng(params.seed).uniform(0, MOST_ALPHA, (max(0, params.evaluations - 1), count))
    yield from _in_batches(drawn, population_size(params, count))


def quadratic(params: AnnealParams, count: int) -> Search:
    """A quadratic surface, fitted to what is known with a ridge; half the budget is drawn uniformly.

    Each later batch evaluates the surface's best point in the box and points near it, then fits again.
    """
    draws = np.random.default_rng(params.seed)
    batch = population_size(params, count)
    left = params.evaluations
    known: list[Floats] = []
    scored: list[Floats] = []
    first = np.vstack([np.ones((1, count)), draws.uniform(0, MOST_ALPHA, (max(0, left // 2 - 1), count))])
    for points in _batches(first[:left], batch):
        known.append(points)
        scored.append((yield points))
        left -= len(points)
    while left > 0:
        best = _best_of_surface(np.vstack(known), np.concatenate(scored), draws)
        spread = 0.1 * draws.standard_normal((min(batch, left), count))
        spread[0] = 0
        points = np.clip(best + spread, 0, MOST_ALPHA)
        known.append(points)
        scored.append((yield points))
        left -= len(points)


def _evolve(params: AnnealParams, count: int, budget: int) -> Search:
    """CMA-ES with exactly `budget` evaluations."""
    size = population_size(params, count)
    optimiser = CMA(
        mean=np.full(count, params.start),
        sigma=params.spread,
        bounds=np.array([[0.0, MOST_ALPHA]] * count),
        seed=params.seed,
        population_size=size,
    )
    while budget > 0:
        points = np.stack([optimiser.ask() for _ in range(min(size, budget))])
        scores = yield points
        budget -= len(points)
        if len(points) == size:  # it minimises
            optimiser.tell([(point, -float(score)) for point, score in zip(points, scores, strict=True)])


def _best_of_surface(known_KL: Floats, scores_K: Floats, draws: np.random.Generator) -> Floats:
    """The best point, among many drawn ones and those known, of a quadratic surface through what is known."""
    features = _quadratic(known_KL)
    centre = scores_K.mean()
    ridge = _RIDGE * np.eye(features.shape[1])
    weights = np.linalg.solve(features.T @ features + ridge, features.T @ (scores_K - centre))
    points = np.vstack([known_KL, draws.uniform(0, MOST_ALPHA, (_LOOKED_AT, known_KL.shape[1]))])
    best: Floats = points[int(np.argmax(_quadratic(points) @ weights))]
    return best


def _quadratic(points_KL: Floats) -> Floats:
    """1, every alpha, and every product of two."""
    rows, columns = np.triu_indices(points_KL.shape[1])
    ones = np.ones((len(points_KL), 1))
    return np.hstack([ones, points_KL, points_KL[:, rows] * points_KL[:, columns]])


def _batches(points: Floats, size: int) -> list[Floats]:
    return [points[start : start + size] for start in range(0, len(points), size)]


def _in_batches(points: Floats, size: int) -> Search:
    for batch in _batches(points, size):
        _ = yield batch  # not `yield from`: a list takes no scores
