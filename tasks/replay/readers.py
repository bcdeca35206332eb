"""Which reader reads which file of CI jobs."""

from pathlib import Path

from tasks.replay.files import job_files, opened
from tasks.replay.github import read_answers
from tasks.replay.jobs import JobGathering, JobList
from tasks.replay.params import ReplayParams
from tasks.replay.table import read_table

_SNIFFED = 256


def read_jobs(path: Path, params: ReplayParams) -> JobList:
    """The jobs of a file, or of all files in a folder: CSV tables and GitHub's answers, plain or gzip.

    Raises `BadJobs` when one is missing, damaged, too large or contradicts itself, or none holds a job.
    """
    gathering = JobGathering()
    for name, file in job_files(path):
        if _is_json(name, file):
            read_answers(file, name, gathering)
        else:
            read_table(file, name, params.columns, dict(params.labels), gathering)
    return gathering.finish()


def _is_json(name: str, file: Path) -> bool:
    """By the ending of the name, else by the first character."""
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(".csv"):
        return False
    if plain.endswith((".json", ".jsonl", ".ndjson")):
        return True
    with opened(file, name) as reader:
        first = reader.head(_SNIFFED)
    return first.lstrip().startswith((b"{", b"["))
