"""Plans of the flows of LARC: slow states and what they are evaluated on, and the replay of CI jobs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from flows.params import Params
from flows.plan.hosted import Ground, made, several
from flows.plan.steps import Step, changed_inputs, differences, step_of, waiting
from flows.settings import Settings
from store import Recipe, Ref, Store

if TYPE_CHECKING:
    from tasks.study import Objective

NEVER = ("never evaluated so",)


def plan_study(store: Store, params: Params, settings: Settings) -> list[Step]:
    """Slow states, sealed predictions and their evaluation: what `cellar larc train` and `eval` would do.

    Raises `UnknownHost` where the store has no host of that name.
    """
    from tasks.study import Plan

    ground = Ground.of(store, params.host, settings)
    study = Plan(ground.host.ref, params.host, params.programs, params.larc, params.study)
    trainings = {arm: study.training(*arm) for arm in study.trainings}
    why = _untrained(ground, params.study.name, trainings)
    states, trained = several(ground, "slow states", list(trainings.values()), why=why, stage="slow-states")
    if states.runs:
        arms = len(study.arms)
        seconds = ground.estimates.each("predictions", arms)
        sealed = waiting("predictions", ["slow states"], done=0, to_do=arms, seconds=seconds)
        return [states, sealed, waiting("evaluation", ["predictions"])]
    slow: dict[tuple[str, int], Ref] = dict(zip(study.trainings, trained, strict=True))
    recipes = [study.predictions(*arm, slow.get(arm)) for arm in study.arms]
    sealed, refs = several(ground, "predictions", recipes, why=("never sealed",), stage="predictions")
    if sealed.runs:
        return [states, sealed, waiting("evaluation", ["predictions"])]
    recipe = study.evaluation(dict(zip(study.arms, refs, strict=True)))
    return [states, sealed, _evaluation(ground, recipe)]


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
    seconds = ground.estimates.each("fit-task", params.replay.training_jobs)
    lasting = ground.estimates.each("replay", params.replay.audit_jobs)
    first, second = made(listed), made(begun)
    if first is None or second is None:
        causes = [step.name for step in (listed, begun) if step.runs]
        fitted = waiting("task fit", causes, seconds=seconds)
    else:
        inputs = [first, host.ref, second]
        recipe = fit_recipe(params.replay, params.larc, inputs, dtype)
        fitted = _one(ground, "task fit", f"residual/{name}.task", recipe, inputs, seconds=seconds)
    task = made(fitted)
    if first is None or second is None or task is None:
        return [listed, begun, fitted, waiting("replay", ["task fit"], seconds=lasting)]
    recipe = replay_recipe(params.replay, params.larc, [first, host.ref, second, task], dtype)
    return [listed, begun, fitted, _evaluation(ground, recipe, "replay", seconds=lasting)]


def _untrained(
    ground: Ground, name: str, trainings: Mapping[tuple["Objective", int], Recipe]
) -> tuple[str, ...]:
    """Why the first slow state that is missing would be trained."""
    for (objective, seed), recipe in trainings.items():
        if ground.known.find(recipe) is None:
            row = ground.known.latest(f"residual/{name}/{objective}-{seed}")
            return differences(ground.known, row, recipe, [ground.host.ref])
    return ()


def _one(
    ground: Ground, name: str, full_name: str, recipe: Recipe, inputs: list[Ref], seconds: float | None = None
) -> Step:
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
    return Step(name, "to run", reasons=reasons, seconds=seconds, bytes=size)


def _evaluation(
    ground: Ground, recipe: Recipe, name: str = "evaluation", seconds: float | None = None
) -> Step:
    row = ground.known.find(recipe)
    if row is not None:
        return Step(name, "done", refs=(str(row.ref),))
    return Step(name, "to run", reasons=NEVER, seconds=seconds)
