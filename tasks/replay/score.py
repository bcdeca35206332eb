"""Scores of a replay: half-Brier averaged jobs, commits, then repositories; and how well chances hold."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.replay.jobs import Job


def nested_weights(jobs: Sequence[Job]) -> np.ndarray:
    """Weights (N,) float64 that sum to one: equal by repository, then by its commits, then by their jobs."""
    commits: dict[str, set[str]] = defaultdict(set)
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for job in jobs:
        commits[job.repository].add(job.commit)
        sizes[job.repository, job.commit] += 1
    return np.array(
        [
            1 / (len(commits) * len(commits[job.repository]) * sizes[job.repository, job.commit])
            for job in jobs
        ]
    )


def commit_weights(jobs: Sequence[Job]) -> np.ndarray:
    """Weights (N,) that sum to one: equal by commit of whatever repository, then by its jobs."""
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for job in jobs:
        sizes[job.repository, job.commit] += 1
    return np.array([1 / (len(sizes) * sizes[job.repository, job.commit]) for job in jobs])


def scores(jobs: Sequence[Job], losses_N: np.ndarray) -> dict[str, float]:
    """Mean half-Brier by the three weightings: `nested` (the primary one), `commits` and `jobs`."""
    return {
        "nested": float(nested_weights(jobs) @ losses_N),
        "commits": float(commit_weights(jobs) @ losses_N),
        "jobs": float(losses_N.mean()),
    }


def calibration_table(
    chances_NC: np.ndarray, labels_N: np.ndarray, *, bins: int = 10
) -> list[dict[str, Any]]:
    """For each bin of the likeliest label's chance: predictions, their mean chance, and how many were right.

    Empty bins are left out.
    """
    top_N, chance_N = chances_NC.argmax(-1), chances_NC.max(-1)
    bin_N = np.minimum((chance_N * bins).astype(int), bins - 1)
    table = []
    for place in range(bins):
        inside = bin_N == place
        if inside.any():
            table.append(
                {
                    "low": place / bins,
                    "high": (place + 1) / bins,
                    "n": int(inside.sum()),
                    "chance": float(chance_N[inside].mean()),
                    "right": float((top_N[inside] == np.asarray(labels_N)[inside]).mean()),
                }
            )
    return table


def calibration_error(table: Sequence[dict[str, Any]]) -> float:
    """Mean distance between chance and share right over all predictions of a calibration table."""
    total = sum(row["n"] for row in table)
    return float(sum(row["n"] * abs(row["chance"] - row["right"]) for row in table) / max(total, 1))
