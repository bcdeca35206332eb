"""How well the pinned index finds elements, apart from what attaching them does (FEM-ASM, addressing).

Coordinate-assisted protocol: every cue is cut from the evidence's own tokens. The learned mean-pooled dense
retriever answers the same cues as the baseline.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.params import EvaluationParams
from tasks.retrieval import DenseSearch, Index, RetrievalFigures, evaluate, prefix_tasks, quote_tasks

_RATES = ("queries_per_second", "p50_ms", "p99_ms")


def address(
    index: Index, texts: Mapping[str, NDArray[np.uint16]], block_tokens: int, params: EvaluationParams
) -> tuple[dict[str, Any], dict[str, float]]:
    """Shares found, and how fast: the shares follow from the inputs, the rates are this machine's.

    Half of the `params.addressing_queries` cues begin a block of a test-split document, half lie anywhere in
    one. `texts` are the documents' own token ids by element name; a share counts same text as right, and its
    `_named` twin only the very element that the cue was cut from.
    """
    rng = np.random.default_rng([params.seed, 4])
    shape = {"cue_tokens": params.cue_tokens, "continuation_tokens": params.target_tokens}
    count = params.addressing_queries // 2
    tasks = prefix_tasks(texts, count=count, block_tokens=block_tokens, generator=rng, **shape)
    tasks += quote_tasks(texts, count=count, generator=rng, **shape)
    charts = evaluate(index, tasks, texts)
    baseline = evaluate(DenseSearch(index), tasks[:: max(1, len(tasks) // params.dense_queries)], texts)
    shares = {**_shares(charts), "protocol": "coordinate-assisted", "dense": _shares(baseline)}
    return shares, {name: getattr(charts, name) for name in _RATES}


def _shares(figures: RetrievalFigures) -> dict[str, Any]:
    return {name: value for name, value in asdict(figures).items() if name not in _RATES}
