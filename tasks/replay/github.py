"""Jobs from what GitHub's API answers on the jobs of workflow runs.

Read are pages of `GET /repos/{owner}/{repo}/actions/runs/{run}/jobs`, what `gh api` prints of them with
`--paginate` (pages one after the other), with `--slurp` (an array of pages) or with `--jq '.jobs[]'` (jobs
one after the other), and arrays of jobs.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.replay.files import opened
from tasks.replay.jobs import GITHUB_CONCLUSIONS, BadJobs, JobGathering

_REPOSITORY = re.compile(r"/repos/([^/\s]{1,100}/[^/\s]{1,100})/actions/")
_SPACE = re.compile(r"\s*")


def read_answers(path: Path, name: str, into: JobGathering) -> None:
    """Add every job of a file of API answers to a gathering.

    GitHub's jobs name their repository in `run_url` and their workflow in `workflow_name`; fields
    `repository`, `workflow_id`, `path` and `event`, which belong to the run, are used where somebody has
    added them. Raises `BadJobs` when the file is no JSON or holds something else.
    """
    with opened(path, name) as reader:
        text = reader.text()
    number = 0
    for value in _values(text, name):
        for record in _records(value, name):
            number += 1
            _add(record, f"{name} job {number:,}", into)


def _values(text: str, name: str) -> Iterator[Any]:
    """The JSON values that follow one another in a text."""
    decoder, place = json.JSONDecoder(), _skip(text, 0)
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, place) + 1
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
            raise BadJobs(
                f"{name} is no JSON at or after line {line:,} ({reason}); fetch it again"
            ) from error
        yield value
        place = _skip(text, place)


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _records(value: Any, name: str) -> Iterator[dict[str, Any]]:
    """The jobs of a page, of an array of pages or jobs, or the one job that the value is."""
    for part in value if isinstance(value, list) else [value]:
        jobs = part.get("jobs", [part] if "id" in part else None) if isinstance(part, dict) else None
        if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
            raise BadJobs(
                f"{name} holds something else than jobs; give what `gh api` answers for "
                "/repos/OWNER/REPO/actions/runs/RUN/jobs"
            )
        yield from jobs


def _add(record: dict[str, Any], place: str, into: JobGathering) -> None:
    repository = record.get("repository")
    if isinstance(repository, dict):
        repository = repository.get("full_name")
    if not repository:
        found = _REPOSITORY.search(_text(record.get("run_url")) or _text(record.get("url")))
        repository = found[1] if found else ""
    values = {
        "id": _text(record.get("id")),
        "repository": _text(repository),
        "workflow_id": _text(record.get("workflow_id")),
        "workflow": _text(record.get("path")) or _text(record.get("workflow_name")),
        "event": _text(record.get("event")),
        "name": _text(record.get("name")),
        "commit": _text(record.get("head_sha")),
        "started": _text(record.get("started_at")),
        "completed": _text(record.get("completed_at")),
    }
    done = record.get("status", "completed") == "completed"
    into.add(
        values, _text(record.get("conclusion")) or None if done else None, GITHUB_CONCLUSIONS, place=place
    )


def _text(value: Any) -> str:
    """Text and whole numbers as text without NUL and lone surrogates; anything else as nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).replace("\x00", "").encode("utf-8", "replace").decode("utf-8").strip()
