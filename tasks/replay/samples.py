"""The tables of a replay: one row for each path and job, and one for each path and batch."""

from dataclasses import dataclass

import numpy as np

from tasks.replay.experts import INDEX
from tasks.replay.hedge import half_brier
from tasks.replay.jobs import LABELS
from tasks.replay.record import StageRecord


@dataclass(frozen=True)
class ReplaySample:
    """One job as one path predicted it at its start; times in microseconds since 1970, UTC.

    `success` to `other` are the chances it gave; `trust` is the controller's in its kept state at the time,
    NaN for other paths.
    """

    path: str
    repository: str
    commit: str
    job: str
    name: str
    label: str
    started_us: int
    completed_us: int
    success: float
    failure: float
    cancelled: float
    other: float
    half_brier: float
    trust: float


@dataclass(frozen=True)
class UpdateSample:
    """One batch of arrived labels as one path learned it; losses are mean cross-entropy in nats.

    `after` is NaN where it was not measured. `event` counts the events of the repository's replay.
    """

    repository: str
    event: int
    path: str
    jobs: int
    before: float
    after: float
    gradient_norm: float
    update_norm: float
    distance: float
    decision: str


def replay_samples(record: StageRecord) -> list[ReplaySample]:
    """Rows of a repository's audit by path, then in the order of the jobs' starts."""
    found = []
    labels_N = np.array([INDEX[job.label] for job in record.jobs])
    for place, path in enumerate(record.paths):
        chances_NC = record.chances_NPC[:, place]
        losses_N = half_brier(chances_NC, labels_N)
        for job, chances_C, loss, trust in zip(
            record.jobs, chances_NC, losses_N, record.trust_N, strict=True
        ):
            found.append(
                ReplaySample(
                    path=path,
                    repository=job.repository,
                    commit=job.commit,
                    job=job.id,
                    name=job.name,
                    label=job.label,
                    started_us=job.started_us,
                    completed_us=job.completed_us,
                    **dict(zip(LABELS, map(float, chances_C), strict=True)),
                    half_brier=float(loss),
                    trust=float(trust) if path == "controller" else float("nan"),
                )
            )
    return found


def update_samples(repository: str, record: StageRecord) -> list[UpdateSample]:
    """Rows of a repository's audit in the order of events."""
    return [
        UpdateSample(
            repository,
            one.event,
            one.update.path,
            one.update.jobs,
            one.update.before,
            one.update.after,
            one.update.gradient_norm,
            one.update.update_norm,
            one.update.distance,
            one.update.decision,
        )
        for one in record.updates
    ]
