"""The figures of a replay: all paths in one table, differences, calibration, courses, updates."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasks.replay.contrasts import contrasts
from tasks.replay.experts import INDEX
from tasks.replay.hedge import half_brier
from tasks.replay.jobs import LABELS, Job, JobList
from tasks.replay.learning import PathUpdate
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.record import StageRecord
from tasks.replay.run import Replayed
from tasks.replay.score import calibration_error, calibration_table, scores
from tasks.replay.split import UNFINISHED, Split

_POINTS = 120
"""Points of a course at most."""


def summarise(listed: JobList, split: Split, replayed: Replayed, params: ReplayParams) -> dict[str, Any]:
    """Everything that a table or a chart of a replay needs, as JSON."""
    records = replayed.audits
    jobs = [job for record in records.values() for job in record.jobs]
    labels_N = np.array([INDEX[job.label] for job in jobs])
    chances = {
        path: np.concatenate([record.chances_NPC[:, place] for record in records.values()])
        for place, path in enumerate(params.paths)
    }
    losses: dict[PathName, np.ndarray] = {path: half_brier(own, labels_N) for path, own in chances.items()}
    calibration = {path: calibration_table(own, labels_N) for path, own in chances.items()}
    updates = [one.update for record in records.values() for one in record.updates]
    return {
        "replay": {
            path: {
                **scores(jobs, losses[path]),
                "by_label": _by_label(labels_N, losses[path]),
                "calibration_error": calibration_error(calibration[path]),
            }
            for path in params.paths
        },
        "differences": contrasts(
            jobs,
            losses,
            resamples=params.resamples,
            confidence=params.confidence,
            seed=params.permutation_seed,
        ),
        "jobs": _counts(listed, split, jobs),
        "calibration": calibration,
        "courses": {repository: _courses(record) for repository, record in records.items()},
        "updates": {
            path: _updates([one for one in updates if one.path == path])
            for path in params.paths
            if any(one.path == path for one in updates)
        },
        "biases": None
        if replayed.biases_C is None
        else dict(zip(LABELS, replayed.biases_C.tolist(), strict=True)),
    }


def _counts(listed: JobList, split: Split, audited: Sequence[Job]) -> dict[str, Any]:
    training = split.pooled
    excluded = {**listed.excluded, UNFINISHED: split.unfinished}
    return {
        "rows": listed.rows,
        "read": len(listed.jobs),
        "excluded": {reason: count for reason, count in excluded.items() if count},
        "training": _counted(training),
        "audit": _counted(audited),
    }


def _counted(jobs: Sequence[Job]) -> dict[str, Any]:
    labels = Counter(job.label for job in jobs)
    return {
        "jobs": len(jobs),
        "commits": len({(job.repository, job.commit) for job in jobs}),
        "repositories": len({job.repository for job in jobs}),
        "labels": {label: labels[label] for label in LABELS},
    }


def _by_label(labels_N: np.ndarray, losses_N: np.ndarray) -> dict[str, float]:
    """Mean half-Brier of the jobs of each label that there is; by job."""
    return {
        label: float(losses_N[labels_N == place].mean())
        for label, place in INDEX.items()
        if (labels_N == place).any()
    }


def _courses(record: StageRecord) -> dict[str, Any]:
    """Mean half-Brier so far after so many jobs in the order of starts, by path; and trust over jobs."""
    labels_N = np.array([INDEX[job.label] for job in record.jobs])
    count = len(record.jobs)
    at = np.unique(np.linspace(1, count, min(_POINTS, count)).astype(int))
    course: dict[str, Any] = {"jobs": at.tolist(), "half_brier": {}}
    for place, path in enumerate(record.paths):
        so_far = np.cumsum(half_brier(record.chances_NPC[:, place], labels_N)) / np.arange(1, count + 1)
        course["half_brier"][path] = so_far[at - 1].tolist()
    if "controller" in record.paths:
        course["trust"] = record.trust_N[at - 1].tolist()
    course["same_batch"] = _same_batch(record)
    return course


def _same_batch(record: StageRecord) -> dict[str, Any]:
    """Mean loss of a batch before and after its update, by path, over stretches of batches in order."""
    found: dict[str, Any] = {}
    for path in record.paths:
        own = [one.update for one in record.updates if one.update.path == path]
        if own:
            parts = np.array_split(np.arange(len(own)), min(_POINTS // 4, len(own)))
            found[path] = {
                "batches": [int(part[-1]) + 1 for part in parts],
                "before": [_mean([own[n].before for n in part]) for part in parts],
                "after": [_mean([own[n].after for n in part]) for part in parts],
            }
    return found


def _updates(own: Sequence[PathUpdate]) -> dict[str, Any]:
    measured = [one for one in own if math.isfinite(one.after)]
    decisions: Mapping[str, int] = Counter(one.decision for one in own)
    return {
        "batches": len(own),
        "before": _mean([one.before for one in measured]),
        "after": _mean([one.after for one in measured]),
        "rose": _mean([float(one.after > one.before) for one in measured]),
        "gradient_norm": _mean([one.gradient_norm for one in own]),
        "update_norm": _mean([one.update_norm for one in own]),
        "distance": own[-1].distance,
        "decisions": dict(sorted(decisions.items())),
    }


def _mean(values: Sequence[float]) -> float | None:
    """None of nothing, and of what is not finite: JSON has no NaN."""
    mean = float(np.mean(values)) if values else math.nan
    return mean if math.isfinite(mean) else None
