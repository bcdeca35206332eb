"""From samples to figures: errors by condition, feedback gains with intervals, and which objective is chosen.

Recipes are averaged within their group and families count equally. A resample draws whole groups with
replacement, family by family, and keeps all their recipes, seeds, arms and cells together (LARC 2.2).
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation import interval
from tasks.programs import stream
from tasks.study.params import JudgeParams, Objective
from tasks.study.predictions import Cell
from tasks.study.scores import SelectionSample

Column = tuple[str, int, str]
"""Arm, seed and cell."""
Value = Callable[[SelectionSample], float]


class Table:
    """One value of every sample: a row for each group, a column for each arm, seed and cell."""

    def __init__(self, samples: Sequence[SelectionSample], value: Value, params: JudgeParams) -> None:
        groups = list(dict.fromkeys((s.family, s.group) for s in samples))
        self._columns: dict[Column, int] = {}
        for sample in samples:
            self._columns.setdefault((sample.arm, sample.seed, sample.cell), len(self._columns))
        shape = (len(groups), len(self._columns))
        sum_GK, count_GK = np.zeros(shape), np.zeros(shape)
        place = {group: row for row, group in enumerate(groups)}
        for s in samples:
            at = place[s.family, s.group], self._columns[s.arm, s.seed, s.cell]
            sum_GK[at] += value(s)
            count_GK[at] += 1
        self._value_GK = sum_GK / count_GK
        families = [family for family, _ in groups]
        self._plain_G = _plain_weights(families)
        self._drawn_RG = _drawn_weights(families, params)
        self._params = params

    def mean(self, weights: Mapping[Column, float]) -> float:
        """A weighted sum of columns."""
        return float(self._plain_G @ self._value_GK @ self._mixed(weights))

    def figure(self, weights: Mapping[Column, float]) -> dict[str, float]:
        """A weighted sum of columns with its percentile interval."""
        mixed_K = self._mixed(weights)
        drawn_R = self._drawn_RG @ (self._value_GK @ mixed_K)
        return asdict(interval(self.mean(weights), drawn_R, self._params.confidence))

    def _mixed(self, weights: Mapping[Column, float]) -> NDArray[np.float64]:
        mixed_K = np.zeros(len(self._columns))
        for column, weight in weights.items():
            mixed_K[self._columns[column]] += weight
        return mixed_K


def judge(
    samples: Sequence[SelectionSample],
    objectives: Sequence[Objective],
    seeds: Sequence[int],
    costs: Mapping[Objective, float],
    params: JudgeParams,
) -> dict[str, Any]:
    """All figures of a study.

    `costs` are what training and adaptation of an objective took, in passes through the host.
    """
    error = Table(samples, lambda s: s.error, params)
    greedy = Table(samples, lambda s: s.greedy_error, params)
    right = Table(samples, lambda s: float(s.all_right), params)
    arms = list(dict.fromkeys((s.arm, s.cell) for s in samples))
    conditions: dict[str, dict[str, Any]] = {}
    for arm, cell in arms:
        trained = list(dict.fromkeys(s.seed for s in samples if s.arm == arm))
        each = {(arm, seed, cell): 1 / len(trained) for seed in trained}
        by_seed = [error.mean({(arm, seed, cell): 1.0}) for seed in trained]
        conditions.setdefault(arm, {})[cell] = {
            "error": error.figure(each),
            "greedy_error": greedy.figure(each),
            "all_right": right.figure(each),
            "by_seed": dict(zip(map(str, trained), by_seed, strict=True)),
            "seed_sd": statistics.stdev(by_seed) if len(by_seed) > 1 else None,
            "families": _families(samples, arm, cell),
        }
    contrasts: dict[str, Any] = {}
    if len(objectives) == 2:
        signs = (("static", 1 / len(seeds)), ("adapted", -1 / len(seeds)))
        keeps = {(arm, seed, Cell.REAL_KEEP.value): share for arm, share in signs for seed in seeds}
        contrasts["objective"] = _judged(error.figure(keeps), params)
    gains: dict[str, dict[str, dict[str, float]]] = {}
    for arm in objectives:
        for name, cells in (("G", _GAIN), ("D", _BINDING)):
            both: dict[Column, float] = {
                (arm, s, cell): sign / len(seeds) for s in seeds for cell, sign in cells.items()
            }
            contrasts[f"{arm}.{name}"] = _judged(error.figure(both), params)
        gains[arm] = {
            str(s): {
                name: error.mean({(arm, s, cell): sign for cell, sign in cells.items()})
                for name, cells in (("G", _GAIN), ("D", _BINDING))
            }
            for s in seeds
        }
    return {
        "conditions": conditions,
        "contrasts": contrasts,
        "gains_by_seed": gains,
        "selection": _select(contrasts, gains, costs, params),
    }


_GAIN = {Cell.REAL_RESET.value: 1.0, Cell.REAL_KEEP.value: -1.0}
"""G: what keeping the states that real feedback made spares."""
_BINDING = {**_GAIN, Cell.SHAM_RESET.value: -1.0, Cell.SHAM_KEEP.value: 1.0}
"""D: G without what feedback bound to the wrong candidates spares as well."""


def _judged(figure: dict[str, float], params: JudgeParams) -> dict[str, Any]:
    return {**figure, "material": figure["value"] >= params.material and figure["low"] > 0}


def _select(
    contrasts: Mapping[str, Any],
    gains: Mapping[str, Mapping[str, Mapping[str, float]]],
    costs: Mapping[Objective, float],
    params: JudgeParams,
) -> dict[str, Any]:
    """The eligible objective whose worst seed gains most; near ones by cost, then the static one."""
    worst = {arm: min(min(found.values()) for found in by_seed.values()) for arm, by_seed in gains.items()}
    eligible = [
        arm
        for arm in gains
        if worst[arm] > 0 and contrasts[f"{arm}.G"]["material"] and contrasts[f"{arm}.D"]["material"]
    ]
    best = max((worst[arm] for arm in eligible), default=None)
    near = [arm for arm in eligible if best is not None and worst[arm] >= best - params.tie]
    chosen = min(near, key=lambda arm: (costs[arm], arm != "static"), default=None)  # type: ignore[index]
    return {
        "worst_seed": worst,
        "eligible": eligible,
        "host_passes": dict(costs),
        "selected": chosen,
    }


def _families(samples: Sequence[SelectionSample], arm: str, cell: str) -> dict[str, float]:
    """Mean errors of each family, all groups, recipes and seeds alike."""
    chosen = [s for s in samples if (s.arm, s.cell) == (arm, cell)]
    return {
        family: statistics.fmean(s.error for s in chosen if s.family == family)
        for family in dict.fromkeys(s.family for s in chosen)
    }


def _plain_weights(families: Sequence[str]) -> NDArray[np.float64]:
    sizes = {family: families.count(family) for family in families}
    return np.array([1 / sizes[family] / len(sizes) for family in families])


def _drawn_weights(families: Sequence[str], params: JudgeParams) -> NDArray[np.float64]:
    """Weights (R, G) of groups in resamples that draw each family's groups with replacement.

    Every table draws the same ones, so that figures of one evaluation are paired.
    """
    rng = stream(params.seed, "resamples")
    weight_RG = np.zeros((params.resamples, len(families)))
    names = list(dict.fromkeys(families))
    for family in names:
        place_F = [row for row, name in enumerate(families) if name == family]
        count = len(place_F)
        drawn_RF = rng.multinomial(count, np.full(count, 1 / count), size=params.resamples)
        weight_RG[:, place_F] = drawn_RF / count / len(names)
    return weight_RG
