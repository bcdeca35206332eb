"""The memory of completed cases of a session: bounded, first in first out (LARC 5)."""

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from tasks.errors import BadPayload
from tasks.replay.jobs import LABELS, LONGEST, Job


@dataclass(frozen=True, slots=True)
class Case:
    """What is remembered of a completed job."""

    workflow: str
    event: str
    name: str
    commit: str
    label: str

    @classmethod
    def of(cls, job: Job) -> "Case":
        """The case of a job whose label has arrived."""
        return cls(job.workflow_key, job.event, job.name, job.commit, job.label)

    @property
    def size(self) -> int:
        """Bytes as JSON."""
        return len(json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode())


class CaseMemory:
    """At most `most` cases within `most_bytes`; the oldest goes first."""

    def __init__(self, most: int, most_bytes: int, cases: Iterable[Case] = ()) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._cases: deque[Case] = deque()
        self._size = 0
        for case in cases:
            self.add(case)

    @property
    def cases(self) -> tuple[Case, ...]:
        """All cases, oldest first."""
        return tuple(self._cases)

    @property
    def size(self) -> int:
        """Bytes of all cases as JSON."""
        return self._size

    def add(self, case: Case) -> None:
        """Remember a case, and forget the oldest ones that do not fit beside it."""
        self._cases.append(case)
        self._size += case.size
        while len(self._cases) > self._most or self._size > self._most_bytes:
            self._size -= self._cases.popleft().size

    def shown(self, job: Job, count: int) -> tuple[Case, ...]:
        """At most `count` cases for a job's prompt, oldest first.

        Chosen are the latest ones of the same workflow and job name, and then the latest others.
        """
        newest = list(reversed(self._cases))
        same = [
            n for n, case in enumerate(newest) if (case.workflow, case.name) == (job.workflow_key, job.name)
        ]
        others = sorted(set(range(len(newest))) - set(same))
        chosen = [*same, *others][:count]
        return tuple(newest[n] for n in sorted(chosen, reverse=True))

    def record(self) -> list[dict[str, str]]:
        """The cases for a session file, oldest first."""
        return [asdict(case) for case in self._cases]

    @classmethod
    def from_record(cls, record: Any, most: int, most_bytes: int) -> "CaseMemory":
        """The memory behind a record; raises `BadPayload` when it is none."""
        names = {field.name for field in fields(Case)}
        longest = max(LONGEST.values())
        if (
            not isinstance(record, list)
            or len(record) > most
            or not all(isinstance(case, dict) and case.keys() == names for case in record)
            or not all(
                isinstance(value, str) and len(value) <= longest for case in record for value in case.values()
            )
            or not all(case["label"] in LABELS for case in record)
        ):
            raise BadPayload("the session holds a case memory that is none; start the replay again")
        return cls(most, most_bytes, (Case(**case) for case in record))
