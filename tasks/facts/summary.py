"""From samples to figures: what each lesson made of facts, in framings that it never used and in its own."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tasks.evaluation import paired_figures
from tasks.facts.asking import FactSample
from tasks.facts.params import FactsParams

HOST = "host"
FIGURES: dict[str, Callable[[FactSample], float]] = {
    "nats": lambda s: s.answer_nats,
    "over_taught": lambda s: s.answer_nats < s.taught_nats,
    "over_untaught": lambda s: s.answer_nats < s.untaught_nats,
    "said": lambda s: s.right,
}
"""nats of the right answer; shares of questions in which it is likelier than every wrong answer that was
taught of another entity, or that was never taught; in which it is said."""


def summarise(samples: Sequence[FactSample], params: FactsParams) -> dict[str, Any]:
    """Figures by condition with intervals over facts, and every condition less every earlier one.

    `new` is over the framings that no lesson uses, `repeated_framing` over the one that all lessons use. A
    guess is right in one of `choices` cases.
    """
    conditions = list(dict.fromkeys(one.condition for one in samples))
    found: dict[str, Any] = {
        "order": conditions,
        "choices": {"over_taught": params.facts_each, "over_untaught": params.untaught + 1},
    }
    for part, new in (("new", True), ("repeated_framing", False)):
        groups = {
            condition: [one for one in samples if (one.condition, one.new) == (condition, new)]
            for condition in conditions
        }
        first = groups[conditions[0]]
        assert all([_asked(s) for s in group] == [_asked(s) for s in first] for group in groups.values())
        values = {
            condition: np.array([[float(value(s)) for value in FIGURES.values()] for s in group])
            for condition, group in groups.items()
        }
        _, cluster_N = np.unique([s.fact for s in first], return_inverse=True)
        figures, differences = paired_figures(
            values,
            list(FIGURES),
            cluster_N.astype(np.int64),
            [(late, early) for early, late in combinations(conditions, 2)],
            resamples=params.resamples,
            confidence=params.confidence,
            generator=np.random.default_rng([params.seed, 3]),
        )
        found[part] = {"questions": len(first), "figures": figures, "differences": differences}
    return found


def _asked(sample: FactSample) -> tuple[int, str]:
    return sample.fact, sample.framing
