"""Differences between paths with intervals: commits are resampled, all paths on the same resample."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tasks.evaluation import interval, resampled_means
from tasks.replay.jobs import Job
from tasks.replay.params import PathName

CONTRASTS: Mapping[str, tuple[PathName, PathName]] = {
    "retained state": ("reset_memory", "keep_memory"),
    "real labels": ("permuted", "keep_memory"),
    "case memory": ("reset", "reset_memory"),
    "controller over reset": ("reset_memory", "controller"),
    "controller over keep": ("keep_memory", "controller"),
    "HEDGE4 over keep": ("keep_memory", "hedge4"),
    "HEDGE5 over HEDGE4": ("hedge4", "hedge5"),
    "calibration": ("original", "calibrated"),
}
"""What each is called, and the two paths: positive where the second loses less. The first two are G and D."""


def contrasts(
    jobs: Sequence[Job],
    losses: Mapping[PathName, np.ndarray],
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """The nested half-Brier of the first path minus that of the second, for all pairs that there are.

    `losses` are (N,) by path. Intervals are percentiles over resamples of each repository's commits; a
    repository's weight is equal in all.
    """
    pairs = {name: pair for name, pair in CONTRASTS.items() if pair[0] in losses and pair[1] in losses}
    if not pairs:
        return {}
    value_NK = np.stack([losses[first] - losses[second] for first, second in pairs.values()], -1)
    generator = np.random.default_rng(seed)
    values, resampled = [], []
    for repository in sorted({job.repository for job in jobs}):
        own = [place for place, job in enumerate(jobs) if job.repository == repository]
        commits = sorted({jobs[place].commit for place in own})
        number = {commit: count for count, commit in enumerate(commits)}
        cluster_n = np.array([number[jobs[place].commit] for place in own])
        sums_CK = np.zeros((len(commits), len(pairs)))
        np.add.at(sums_CK, cluster_n, value_NK[own])
        means_CK = sums_CK / np.bincount(cluster_n)[:, None]
        values.append(means_CK.mean(0))
        resampled.append(
            resampled_means(means_CK, np.arange(len(commits)), resamples=resamples, generator=generator)
        )
    value_K, resampled_RK = np.mean(values, 0), np.mean(resampled, 0)
    return {
        name: {**asdict(interval(value_K[place], resampled_RK[:, place], confidence)), "paths": list(pair)}
        for place, (name, pair) in enumerate(pairs.items())
    }
