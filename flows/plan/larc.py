"""Plans of the flows of LARC: slow states and what they are evaluated on, and the replay of CI jobs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.params import Params
from flows.plan.hosted import NEVER, Ground, evaluation_of, made, partly, several
from flows.plan.steps import Step, changed_inputs, differences, step_of, waiting
from flows.settings import Settings
from store import Recipe, Ref, Store

if TYPE_CHECKING:
    from tasks.study import Objective


def plan_study(store: Store, params: Params, settings: Settings) -> list[Step]:
    """Slow states, sealed predictions and their evaluation: what `cellar larc train` and `eval` would do.

    Raises `UnknownHost` where the store has no host of that name.
    """
    from tasks.study import Plan

    ground = Ground.of(store, params.host, settings)
    study = Plan(ground.host.ref, params.host, params.programs, params.larc, params.study)
    trainings = {arm: study.training(*arm) for arm in study.trainings}
    why = _untrained(ground, params.study.name, trainings)
    states, trained = several(
        ground, "slow states", list(trainings.values()), why=why, stage="slow-states", unit="states"
    )
    if states.runs:
        later = waiting("predictions", ["slow states"])
        sealed = partly(later, "predictions", ground, units=len(study.arms), unit="predictions")
        return [states, sealed, waiting("evaluation", ["predictions"])]
    slow: dict[tuple[str, int], Ref] = dict(zip(study.trainings, trained, strict=True))
    recipes = [study.predictions(*arm, slow.get(arm)) for arm in study.arms]
    sealed, refs = several(
        ground, "predictions", recipes, why=("never sealed",), stage="predictions", unit="predictions"
    )
    if sealed.runs:
        return [states, sealed, waiting("evaluation", ["predictions"])]
    recipe = study.evaluation(dict(zip(study.arms, refs, strict=True)))
    if (row := ground.known.find(recipe)) is not None:
        return [states, sealed, Step("evaluation", "done", refs=(str(row.ref),))]
    return [states, sealed, Step("evaluation", "to run", reasons=NEVER)]


def plan_replay(
    store: Store, params: Params, settings: Settings, jobs: Path, start: str | None = None
) -> list[Step]:
    """The jobs, the state to start from, the task fit and the replay: what `cellar larc replay` would do.

    Raises `UnknownHost` and, of files that are not there, `BadJobs`; `ElementNotFound` for a `start` that the
    store lacks.
    """
    from tasks.larc import find_residual
    from tasks.replay import fit_recipe, jobs_recipe, replay_recipe, start_recipe

    ground, name = Ground.of(store, params.host, settings), params.replay.name
    known, host = ground.known, ground.host
    dtype = str(host.dtype).removeprefix("torch.")
    listed = _one(ground, "jobs", f"corpus/{name}.jobs", jobs_recipe(params.replay, jobs), [])
    if start is None:
        drawn = start_recipe(params.larc, params.replay.fit.seed, host.ref)
        begun = step_of(known, "start", f"residual/{name}.start", drawn, [host.ref])
    else:
        begun = Step("start", "done", refs=(str(find_residual(store, start).ref),))
    learned: dict[str, Any] = {"units": params.replay.training_jobs, "unit": "jobs"}
    replayed: dict[str, Any] = {"units": params.replay.audit_jobs, "unit": "jobs"}
    first, second = made(listed), made(begun)
    if first is None or second is None:
        fitted = waiting("task fit", [step.name for step in (listed, begun) if step.runs])
    else:
        inputs = [first, host.ref, second]
        recipe = fit_recipe(params.replay, params.larc, inputs, dtype)
        fitted = _one(ground, "task fit", f"residual/{name}.task", recipe, inputs)
    if fitted.runs:
        fitted = partly(fitted, "fit-task", ground, **learned)
    task = made(fitted)
    if first is None or second is None or task is None:
        later = waiting("replay", ["task fit"])
        return [listed, begun, fitted, partly(later, "replay", ground, **replayed)]
    recipe = replay_recipe(params.replay, params.larc, [first, host.ref, second, task], dtype)
    return [listed, begun, fitted, evaluation_of(ground, recipe, "replay", step="replay", **replayed)]


def _untrained(
    ground: Ground, name: str, trainings: Mapping[tuple["Objective", int], Recipe]
) -> tuple[str, ...]:
    """Why the first slow state that is missing would be trained."""
    for (objective, seed), recipe in trainings.items():
        if ground.known.find(recipe) is None:
            row = ground.known.latest(f"residual/{name}/{objective}-{seed}")
            return differences(ground.known, row, recipe, [ground.host.ref])
    return ()


def _one(ground: Ground, name: str, full_name: str, recipe: Recipe, inputs: list[Ref]) -> Step:
    """A step whose record does not hold all parameters, so that what changed is said less exactly."""
    row = ground.known.find(recipe)
    if row is not None:
        return Step(name, "done", refs=(str(row.ref),))
    before = ground.known.latest(full_name)
    if before is None:
        reasons: tuple[str, ...] = ("never built",)
    else:
        changed = tuple(changed_inputs(ground.known, before, inputs)) if inputs else ()
        reasons = changed or ("other parameters or files than before",)
    size = ground.estimates.bytes(full_name)
    return Step(name, "to run", reasons=reasons, bytes=size)
