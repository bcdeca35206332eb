"""CI jobs as the replay sees them: one record, its label, and what is left out of a file with the reason."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from tasks.errors import TaskError

Label = Literal["success", "failure", "cancelled", "other"]
LABELS: tuple[Label, ...] = get_args(Label)
GITHUB_CONCLUSIONS: Mapping[str, Label] = {
    "success": "success",
    "failure": "failure",
    "cancelled": "cancelled",
    "timed_out": "other",
    "action_required": "other",
    "neutral": "other",
    "skipped": "other",
    "stale": "other",
    "startup_failure": "other",
}
"""What GitHub writes as a job's conclusion, and the label it counts as (LARC 5)."""

MOST_JOBS = 1_000_000
LONGEST = {
    "id": 64,
    "repository": 200,
    "workflow_id": 64,
    "workflow": 300,
    "event": 64,
    "name": 300,
    "commit": 64,
}
"""Characters of a field; a case of a session's memory must fit into 16 KiB."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

Reason = Literal[
    "incomplete",
    "unknown conclusion",
    "missing field",
    "field too long",
    "bad timestamp",
    "ends before it starts",
    "duplicate",
    "unfinished when the audit began",
]
"""Why a row of a file is no job of a replay."""


class BadJobs(TaskError):
    """A file of CI jobs is missing, too large, not readable as a whole, or contradicts itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """One completed CI job; times in microseconds since 1970, UTC.

    `workflow` is the workflow's path or name; it and `workflow_id` and `event` are "" where nobody recorded
    them.
    """

    id: str
    repository: str
    workflow_id: str
    workflow: str
    event: str
    name: str
    commit: str
    started_us: int
    completed_us: int
    label: str

    @property
    def order(self) -> tuple[int, int, str]:
        """The stable order of jobs at one timestamp: numbered ids by number, before all others."""
        plain = self.id.isascii() and self.id.isdigit()
        return (0, int(self.id), self.id) if plain else (1, 0, self.id)

    @property
    def workflow_key(self) -> str:
        """What names the workflow: its id where there is one, else its path or name."""
        return self.workflow_id or self.workflow


@dataclass(frozen=True)
class JobList:
    """Jobs ordered by start and stable id, and how many rows were left out for which reason."""

    jobs: tuple[Job, ...]
    excluded: Mapping[str, int]
    rows: int


@dataclass
class JobGathering:
    """Collects the jobs of files one by one; what cannot be one is counted, what contradicts is refused."""

    excluded: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    _jobs: dict[str, tuple[Job, str]] = field(default_factory=dict)

    def add(
        self, values: Mapping[str, str], conclusion: str | None, labels: Mapping[str, Label], *, place: str
    ) -> None:
        """Add the row that stands at `place`.

        `values` holds the text of the fields of `Job`, times as `started` and `completed`; `conclusion` is
        None for a job that has not completed. Raises `BadJobs` when an id stands twice with different values,
        or there are too many rows.
        """
        self.rows += 1
        if self.rows > MOST_JOBS:
            raise BadJobs(
                f"{place} is beyond the {MOST_JOBS:,} jobs that a replay reads; give a part of them"
            )
        made = _job(values, conclusion, labels)
        if not isinstance(made, Job):
            self.excluded[made] += 1
            return
        first = self._jobs.get(made.id)
        if first is None:
            self._jobs[made.id] = made, place
        elif first[0] == made:
            self.excluded["duplicate"] += 1
        else:
            raise BadJobs(
                f"job {made.id} stands twice with different values, in {first[1]} and {place}; keep one"
            )

    def finish(self) -> JobList:
        """All jobs in the order of their starts; raises `BadJobs` when there is none."""
        if not self._jobs:
            why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.excluded.items()))
            raise BadJobs(
                f"no completed job in {self.rows:,} rows ({why or 'all files are empty'}); give other files, "
                "or name their columns and labels with replay.columns and replay.labels"
            )
        ordered = sorted((job for job, _ in self._jobs.values()), key=lambda job: (job.started_us, job.order))
        return JobList(tuple(ordered), dict(sorted(self.excluded.items())), self.rows)


def microseconds(text: str) -> int | None:
    """An ISO 8601 time as microseconds since 1970, UTC unless it says otherwise; None where it is no time."""
    try:
        time = datetime.fromisoformat(text.strip())
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return (time - _EPOCH) // timedelta(microseconds=1) if _FIRST <= time < _LAST else None


def _job(values: Mapping[str, str], conclusion: str | None, labels: Mapping[str, Label]) -> Job | Reason:
    if not conclusion or not values.get("completed"):
        return "incomplete"
    label = labels.get(conclusion)
    if label is None:
        return "unknown conclusion"
    if not all(values.get(name) for name in ("id", "repository", "name", "commit", "started")):
        return "missing field"
    if any(len(values.get(name, "")) > most for name, most in LONGEST.items()):
        return "field too long"
    started, completed = microseconds(values["started"]), microseconds(values["completed"])
    if started is None or completed is None:
        return "bad timestamp"
    if completed < started:
        return "ends before it starts"
    text = {name: values.get(name, "") for name in LONGEST}
    return Job(**text, started_us=started, completed_us=completed, label=label)
