"""Flow `evaluate-skills`: routing, return interfaces, stopping and interventions on test prompts."""

from typing import Any

from flows import watch
from flows.build_skills import build
from flows.engine import bind, flow
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from tasks.skills.params import SkillsParams


def _evaluate(settings: Settings, params: SkillsParams) -> dict[str, Any]:
    from tasks.skills.step import evaluate_skills as evaluate
    from tasks.skills.step import find_skill_set

    prepare_threads(settings)
    store = open_store(settings)
    with watch.progress("evaluate skills", "task-conditions") as progress:
        result = evaluate(store, params, skills=find_skill_set(store, params), progress=progress)
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


evaluate_task = bind(_evaluate, name="evaluate skills")


def _flow(params: Params, settings: Settings) -> dict[str, Any]:
    """Build the skills, or find them, and evaluate them; the store keeps the summary and every sample.

    Returns the references of the built elements and of `evaluation` and `samples`.
    """
    built = build(params.skills, settings)
    return {**built, **evaluate_task(settings, params.skills)}


evaluate_skills = flow(_flow, name="evaluate-skills")
