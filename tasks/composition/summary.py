"""From samples to figures: nats, tokens and whole strings by condition, and what shadow and text add."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tasks.composition.params import CompositionParams
from tasks.composition.reading import CompositionSample
from tasks.evaluation import paired_figures

FIGURES: dict[str, Callable[[CompositionSample], float]] = {
    "nats": lambda s: s.nats,
    "share": lambda s: s.share,
    "exact": lambda s: s.exact,
}
ORDER = ("host", "shadow", "text", "shadow + text", "other text")
PAIRS = (
    ("shadow", "host"),
    ("text", "host"),
    ("shadow + text", "text"),
    ("shadow + text", "shadow"),
    ("other text", "host"),
)


def summarise(samples: Sequence[CompositionSample], params: CompositionParams) -> dict[str, Any]:
    """Figures of all strings, and apart of those that a shadow was and was not written from.

    Intervals are over documents, differences paired. `found` says in how many cases the element was the
    passage's own, and the text shown held the string.
    """
    shown = [one for one in samples if one.condition == "text"]
    known = sorted({one.learned for one in shown})
    parts = {"all": samples}
    if len(known) > 1:
        parts |= {f"learned: {said}": [one for one in samples if one.learned == said] for said in known}
    return {
        "order": list(ORDER),
        "passages": len(shown),
        "learned": {said: sum(one.learned == said for one in shown) for said in known},
        "found": {
            "own": float(np.mean([one.found == one.element for one in shown])),
            "holds": float(np.mean([one.holds for one in shown])),
        },
        "composed": {part: _figures(chosen, params) for part, chosen in parts.items()},
    }


def _figures(samples: Sequence[CompositionSample], params: CompositionParams) -> dict[str, Any]:
    groups = {name: [one for one in samples if one.condition == name] for name in ORDER}
    first = groups[ORDER[0]]
    _, cluster_N = np.unique([one.element for one in first], return_inverse=True)
    figures, differences = paired_figures(
        {
            name: np.array([[float(value(one)) for value in FIGURES.values()] for one in group])
            for name, group in groups.items()
        },
        list(FIGURES),
        cluster_N.astype(np.int64),
        PAIRS,
        resamples=params.resamples,
        confidence=params.confidence,
        generator=np.random.default_rng([params.seed, 1]),
    )
    return {"strings": len(first), "figures": figures, "differences": differences}
