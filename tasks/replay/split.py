"""The training prefix and the audit of each repository, in time order (LARC 5)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.replay.jobs import BadJobs, Job

UNFINISHED = "unfinished when the audit began"


@dataclass(frozen=True)
class Split:
    """Jobs by repository; `unfinished` counts training jobs whose label came after the audit began."""

    training: dict[str, tuple[Job, ...]]
    audit: dict[str, tuple[Job, ...]]
    unfinished: int

    @property
    def pooled(self) -> list[Job]:
        """All training jobs of all repositories, by start and stable id."""
        return sorted(
            (job for jobs in self.training.values() for job in jobs),
            key=lambda job: (job.started_us, job.order),
        )


def split_jobs(jobs: Sequence[Job], training_jobs: int, audit_jobs: int) -> Split:
    """The first jobs of each repository train, at most half of what it has; those after them are replayed.

    A training job that has not completed when its repository's audit begins is left out: its label was not
    known then. Raises `BadJobs` when no repository has two jobs.
    """
    by_repository: dict[str, list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: (job.started_us, job.order)):
        by_repository[job.repository].append(job)
    training, audit, unfinished = {}, {}, 0
    for repository, own in sorted(by_repository.items()):
        if len(own) < 2:
            continue
        first = min(training_jobs, len(own) // 2)
        rest = tuple(own[first : first + audit_jobs])
        known = tuple(job for job in own[:first] if job.completed_us < rest[0].started_us)
        unfinished += first - len(known)
        training[repository], audit[repository] = known, rest
    if not any(training.values()):
        raise BadJobs(
            f"{len(jobs):,} jobs leave no training job that completed before an audit; give more jobs of a "
            "repository"
        )
    return Split(training, audit, unfinished)
