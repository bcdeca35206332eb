"""From samples to figures with intervals: families, interfaces, ranges and stop rules apart."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tasks.evaluation import interval, resampled_means
from tasks.skills.params import SkillEvaluationParams
from tasks.skills.samples import EXTERNAL, INTERVENTION, STANDALONE, SkillSample

_LEARNED = ("strict", "token_sequence", "first_integer", "stopped")
_NAMES = {"strict": "whole_output", "stopped": "stop"}
Value = Callable[[SkillSample], float]


def summarise(samples: Sequence[SkillSample], params: SkillEvaluationParams) -> dict[str, Any]:
    """Shares of tasks with intervals over phrasings, and NLL in nats per token.

    Tasks with one phrasing are not independent: a resample draws whole phrasings.
    """
    ranges = sorted({sample.range for sample in samples})
    first = [s for s in samples if s.family == STANDALONE]
    return {
        "tasks": {name: sum(s.range == name for s in first) for name in ranges},
        "phrasings": len({s.phrasing for s in samples}),
        "routing": {name: _routing([s for s in first if s.range == name], params) for name in ranges},
        "families": {
            family: _by(samples, family, ranges, lambda group: _figures(group, params))
            for family in (STANDALONE, EXTERNAL)
        }
        | {INTERVENTION: _by(samples, INTERVENTION, ranges, lambda group: _intervened(group, params))},
    }


def _by(
    samples: Sequence[SkillSample],
    family: str,
    ranges: Sequence[str],
    figures: Callable[[Sequence[SkillSample]], dict[str, Any]],
) -> dict[str, Any]:
    """Figures of a family by interface and range."""
    chosen = [s for s in samples if s.family == family]
    interfaces = dict.fromkeys(s.interface for s in chosen)
    return {
        interface: {
            name: figures([s for s in chosen if s.interface == interface and s.range == name])
            for name in ranges
        }
        for interface in interfaces
    }


def _routing(samples: Sequence[SkillSample], params: SkillEvaluationParams) -> dict[str, Any]:
    names: dict[str, Value] = {
        "operation": lambda s: s.operation == s.routed,
        "operands": lambda s: s.operands_right,
    }
    return {"n": len(samples), **_means(samples, names, params)}


def _figures(samples: Sequence[SkillSample], params: SkillEvaluationParams) -> dict[str, Any]:
    return {
        "n": len(samples),
        **_means(samples, {"nll": lambda s: s.nll}, params),
        "learned": _means(samples, _named(_LEARNED, ""), params),
        "declared": _means(samples, _named(_LEARNED, "declared_"), params),
    }


def _intervened(samples: Sequence[SkillSample], params: SkillEvaluationParams) -> dict[str, Any]:
    """What outputs do, for substitutes that differ from the true value and for those that are equal to it."""
    names: dict[str, Value] = {
        "follows": lambda s: s.strict,
        "stays": lambda s: s.stays,
        "stop": lambda s: s.stopped,
    }
    strata = {"differs": [s for s in samples if s.differs], "equal": [s for s in samples if not s.differs]}
    return {
        stratum: {"n": len(group), **(_means(group, names, params) if group else {})}
        for stratum, group in strata.items()
    } | {
        "follows_by_substitute": {
            kind: {"n": len(group), **_means(group, {"follows": names["follows"]}, params)}
            for kind in sorted({s.substitute for s in strata["differs"]})
            if (group := [s for s in strata["differs"] if s.substitute == kind])
        }
    }


def _named(fields: Sequence[str], prefix: str) -> dict[str, Value]:
    def of(name: str) -> Value:
        return lambda sample: float(getattr(sample, name))

    return {_NAMES.get(name, name): of(prefix + name) for name in fields}


def _means(
    samples: Sequence[SkillSample], names: dict[str, Value], params: SkillEvaluationParams
) -> dict[str, dict[str, float]]:
    value_NK = np.array([[float(value(s)) for value in names.values()] for s in samples])
    _, cluster_N = np.unique([s.phrasing for s in samples], return_inverse=True)
    drawn_RK = resampled_means(
        value_NK,
        cluster_N.astype(np.int64),
        resamples=params.resamples,
        generator=np.random.default_rng([params.seed, 2]),
    )
    return {
        name: asdict(interval(value_NK[:, column].mean(), drawn_RK[:, column], params.confidence))
        for column, name in enumerate(names)
    }
