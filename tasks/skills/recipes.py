"""How the elements of the skills are made: what each one's fingerprint consists of."""

from collections.abc import Sequence
from typing import Any

from store import Recipe, Ref
from tasks.skills.compiler import Operation
from tasks.skills.params import SkillsParams
from tasks.skills.tasks import TaskMaker


def training_tasks(params: SkillsParams) -> TaskMaker:
    """The tasks that tokenizer, controller and core are trained on."""
    return TaskMaker(params.phrases, params.division, "train", "train")


def program_recipe(params: SkillsParams, operation: Operation) -> Recipe:
    """How the program of an operation is compiled."""
    return Recipe("skills.compile/1", {"operation": operation.value, "division": params.division.value}, ())


def tokenizer_recipe(params: SkillsParams) -> Recipe:
    """How the tokenizer is learned."""
    tokens = params.tokens.model_dump(mode="json", include={"vocab_size", "prompts"})
    return Recipe("skills.train_tokenizer/1", {**_prompts(params), **tokens}, ())


def controller_recipe(params: SkillsParams, tokenizer: Ref) -> Recipe:
    """How the controller is trained."""
    options = {**_prompts(params), "controller": params.controller.model_dump(mode="json")}
    return Recipe("skills.train_controller/1", options, (tokenizer.version,))


def core_recipe(params: SkillsParams, tokenizer: Ref) -> Recipe:
    """How the core is trained."""
    options = {
        **_prompts(params),
        "tokens": params.tokens.model_dump(mode="json"),
        "core": params.core.model_dump(mode="json"),
    }
    return Recipe("skills.train_core/1", options, (tokenizer.version,))


def evaluation_recipe(params: SkillsParams, elements: Sequence[Ref]) -> Recipe:
    """How a set of skills is evaluated, given all of its elements in order."""
    versions = tuple(ref.version for ref in elements)
    return Recipe("evaluation.skills/1", params.model_dump(mode="json"), versions)


def _prompts(params: SkillsParams) -> dict[str, Any]:
    """What training prompts follow from; the ranges of other splits play no part."""
    phrases = params.phrases.model_dump(mode="json", exclude={"validation", "disjoint"})
    return {"name": params.name, "division": params.division.value, "phrases": phrases}
