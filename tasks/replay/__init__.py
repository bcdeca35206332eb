"""Replay of delayed CI feedback: predict at start, learn at completion, compare ways to learn."""

from tasks.replay.jobs import LABELS, BadJobs, Job, JobList
from tasks.replay.params import ReplayParams
from tasks.replay.readers import read_jobs

__all__ = ["LABELS", "BadJobs", "Job", "JobList", "ReplayParams", "read_jobs"]
