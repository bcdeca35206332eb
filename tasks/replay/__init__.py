"""Replay of delayed CI feedback: predict at start, learn at completion, compare ways to learn."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.replay.jobs import LABELS, BadJobs, Job, JobList
    from tasks.replay.params import ReplayParams
    from tasks.replay.readers import read_jobs
    from tasks.replay.recipes import fit_recipe, jobs_recipe, replay_recipe, start_recipe

__all__ = [
    "LABELS",
    "BadJobs",
    "Job",
    "JobList",
    "ReplayParams",
    "fit_recipe",
    "jobs_recipe",
    "read_jobs",
    "replay_recipe",
    "start_recipe",
]

export_lazily(__name__)
