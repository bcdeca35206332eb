"""How the elements of a replay are made: what each one's fingerprint consists of."""

from collections.abc import Sequence
from typing import Any

from store import Recipe, Ref
from tasks.replay.params import ReplayParams


def jobs_recipe(params: ReplayParams, source: str) -> Recipe:
    """How files of that content identity become a list of jobs."""
    options = {
        "source": source,
        "columns": params.columns.model_dump(mode="json"),
        "labels": dict(sorted(params.labels.items())),
    }
    return Recipe("replay.jobs/1", options, ())


def start_recipe(params: ReplayParams, host: Ref) -> Recipe:
    """How an untrained slow state is drawn."""
    options = {"rank": params.rank, "insertion": params.insertion, "seed": params.fit.seed}
    return Recipe("replay.start/1", options, (host.version,))


def fit_recipe(params: ReplayParams, jobs: Ref, host: Ref, start: Ref, dtype: str) -> Recipe:
    """How a slow state is fitted to the training prefix."""
    options = {**_prefix(params), "fit": params.fit.model_dump(mode="json"), "dtype": dtype}
    return Recipe("replay.fit/1", options, (jobs.version, host.version, start.version))


def replay_recipe(params: ReplayParams, elements: Sequence[Ref], dtype: str) -> Recipe:
    """How the audit is replayed, from jobs, host, and the slow states before and after the fit."""
    options = {**params.model_dump(mode="json", exclude={"columns", "labels", "fit"}), "dtype": dtype}
    return Recipe("replay/1", options, tuple(ref.version for ref in elements))


def _prefix(params: ReplayParams) -> dict[str, Any]:
    """What the training prefix and its prompts follow from; how long the audit is plays no part."""
    return params.model_dump(mode="json", include={"training_jobs", "cases"})
