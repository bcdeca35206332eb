"""How well the pinned index finds elements, apart from what attaching them does (FEM-ASM, addressing).

Coordinate-assisted protocol: every cue is cut from the evidence's own tokens. The learned mean-pooled dense
retriever answers the same cues as the baseline.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.params import EvaluationParams
from tasks.retrieval import DenseSearch, Index, RetrievalFigures, evaluate, prefix_tasks, quote_tasks

_RATES = ("queries_per_second", "p50_ms", "p99_ms")


def address(
    index: Index,
    texts: Mapping[str, NDArray[np.uint16]],
    asked: Iterable[str],
    block_tokens: int,
    params: EvaluationParams,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Shares found, and how fast: the shares follow from the inputs, the rates are this machine's.

    Half of the `params.addressing_queries` cues begin a block of one of the `asked` elements, half lie
    anywhere in one. `texts` are the documents' own token ids of all elements by name: a share counts an
    element that holds the same cue and continuation as right, its `_named` twin only the one that the cue was
    cut from.
    """
    sources = {name: texts[name] for name in asked}
    rng = np.random.default_rng([params.seed, 4])
    shape = {"cue_tokens": params.cue_tokens, "continuation_tokens": params.target_tokens}
    count = params.addressing_queries // 2
    tasks = prefix_tasks(sources, count=count, block_tokens=block_tokens, generator=rng, **shape)
    tasks += quote_tasks(sources, count=count, generator=rng, **shape)
    charts = evaluate(index, tasks, texts)
    baseline = evaluate(DenseSearch(index), tasks[:: max(1, len(tasks) // params.dense_queries)], texts)
    shares = {**_shares(charts), "protocol": "coordinate-assisted", "dense": _shares(baseline)}
    return shares, {name: getattr(charts, name) for name in _RATES}


def _shares(figures: RetrievalFigures) -> dict[str, Any]:
    return {name: value for name, value in asdict(figures).items() if name not in _RATES}
