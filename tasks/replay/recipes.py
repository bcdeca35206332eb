"""How the elements of a replay are made: what each one's fingerprint consists of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from store import Recipe, Ref
from tasks.larc import LarcParams
from tasks.replay.files import content_identity, job_files
from tasks.replay.params import ReplayParams


def jobs_recipe(params: ReplayParams, path: Path) -> Recipe:
    """How the content of a file or folder becomes a list of jobs; raises `BadJobs` where there is none."""
    options = {
        "source": content_identity(job_files(path)),
        "columns": params.columns.model_dump(mode="json"),
        "labels": dict(sorted(params.labels.items())),
    }
    return Recipe("replay.jobs/1", options, ())


def start_recipe(larc: LarcParams, seed: int, host: Ref) -> Recipe:
    """How an untrained slow state is drawn."""
    options = larc.model_dump(mode="json", include={"rank", "deviation", "insertion"})
    return Recipe("replay.start/1", {**options, "seed": seed}, (host.version,))


def fit_recipe(params: ReplayParams, larc: LarcParams, elements: Sequence[Ref], dtype: str) -> Recipe:
    """How a slow state is fitted to the training prefix, from jobs, host and the state before it."""
    options = {**_prefix(params), **_numbers(larc, dtype), "fit": params.fit.model_dump(mode="json")}
    return Recipe("replay.fit/1", options, tuple(ref.version for ref in elements))


def replay_recipe(params: ReplayParams, larc: LarcParams, elements: Sequence[Ref], dtype: str) -> Recipe:
    """How the audit is replayed, from jobs, host, and the slow states before and after the fit."""
    options = params.model_dump(mode="json", exclude={"columns", "labels", "fit"})
    return Recipe("replay/2", {**options, **_numbers(larc, dtype)}, tuple(ref.version for ref in elements))


def _numbers(larc: LarcParams, dtype: str) -> dict[str, Any]:
    """What decides the last bits of a read: the format of numbers and the size of physical batches."""
    return {"dtype": dtype, "tokens": larc.tokens}


def _prefix(params: ReplayParams) -> dict[str, Any]:
    """What the training prefix and its prompts follow from; how long the audit is plays no part."""
    return params.model_dump(mode="json", include={"training_jobs", "cases"})
