"""The skills room's door to the store: tokenizer, controller and core, and their evaluation."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from store import Element, Recipe, Ref, Store
from store.errors import ElementNotFound
from tasks.assembly import ResidualCore, core_accounts, load_core
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.corpus import Tokenizer, load_tokenizer
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.progress import Progress, silent
from tasks.skills.compiler import OPERATIONS, Operation
from tasks.skills.controller import load_controller
from tasks.skills.controller import train_controller as train_controller_on
from tasks.skills.params import SkillsParams
from tasks.skills.phrasing import Split
from tasks.skills.pipeline import Pipeline
from tasks.skills.program import load_program
from tasks.skills.recipes import (
    controller_recipe,
    core_recipe,
    evaluation_recipe,
    program_recipe,
    tokenizer_recipe,
    training_tasks,
)
from tasks.skills.render import Renderer
from tasks.skills.run import SkillEvaluator
from tasks.skills.samples import SkillSample
from tasks.skills.summary import summarise
from tasks.skills.tasks import Range, SkillTask, TaskMaker
from tasks.skills.train import new_skill_core, train_skill_core
from tasks.skills.vocabulary import learn_vocabulary
from tasks.tables import encode_records, load_records

SUBJECT: SubjectName = "skills"
SAMPLES_RECIPE = "evaluation.skills.samples/1"
JSON_MEDIA = "application/json"
EVALUATED: tuple[tuple[Range, Split], ...] = (("train", "test"), ("disjoint", "test"))
"""Ranges of operands, each with the split of its phrasings."""


@dataclass(frozen=True)
class SkillSet:
    """What answers arithmetic prompts: the programs by operation, and what reads and writes for them."""

    programs: Mapping[Operation, Ref]
    tokenizer: Ref
    controller: Ref
    core: Ref

    @property
    def refs(self) -> list[Ref]:
        """All of its elements, programs first."""
        return [*self.programs.values(), self.tokenizer, self.controller, self.core]


def train_skill_tokenizer(store: Store, params: SkillsParams) -> Ref:
    """Publish the tokenizer learned on training prompts and their answers, or find it."""
    recipe = tokenizer_recipe(params)
    if (row := store.catalog().find(recipe.fingerprint)) is not None:
        return row.ref
    tokenizer = learn_vocabulary(training_tasks(params), params.tokens)
    element = Element(
        "tokenizer",
        params.name,
        tokenizer.to_bytes(),
        media=JSON_MEDIA,
        provenance={"recipe": recipe.fingerprint, "params": recipe.params},
        facts={"vocab_size": tokenizer.vocab_size},
    )
    return store.publish([element], message=f"Publish tokenizer {params.name} of arithmetic prompts")[0]


def train_controller(
    store: Store, params: SkillsParams, *, tokenizer: Ref, progress: Progress = silent
) -> Ref:
    """Publish the controller `core/<name>.controller`, or find it."""
    recipe = controller_recipe(params, tokenizer)
    if (row := store.catalog().find(recipe.fingerprint)) is not None:
        return row.ref
    tokens = load_tokenizer(store, tokenizer)
    controller = train_controller_on(params.controller, training_tasks(params), tokens, progress)
    element = Element(
        "core",
        f"{params.name}.controller",
        controller.to_bytes(),
        requires=(tokenizer.version,),
        provenance={"recipe": recipe.fingerprint, "params": recipe.params, "tokenizer": str(tokenizer)},
        facts={"trainable_parameters": sum(p.numel() for p in controller.parameters())},
    )
    return store.publish([element], message=f"Publish the controller of {params.name}")[0]


def train_core(
    store: Store,
    params: SkillsParams,
    *,
    tokenizer: Ref,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish the core `core/<name>` that writes what skills return, or find it.

    With `work_dir` an interrupted training continues, bit for bit, from what it kept every `checkpoint_s`
    seconds.
    """
    recipe = core_recipe(params, tokenizer)
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    if (found := find_trained(store, recipe.fingerprint, checkpoints)) is not None:
        return found
    tokens = load_tokenizer(store, tokenizer)
    core = new_skill_core(params.core, params.tokens, tokens)
    renderer = Renderer(tokens, core.identity, params.tokens)
    train_skill_core(
        core, renderer, training_tasks(params), params.core, progress=progress, checkpoints=checkpoints
    )
    element = Element(
        "core",
        params.name,
        core.to_bytes(),
        requires=(tokenizer.version,),
        provenance={"recipe": recipe.fingerprint, "params": recipe.params, "tokenizer": str(tokenizer)},
        facts=asdict(core_accounts(core)),
    )
    message = f"Publish core {params.name}, {params.core.steps} updates"
    return publish_trained(store, element, checkpoints, message=message)


def evaluate_skills(
    store: Store, params: SkillsParams, *, skills: SkillSet, progress: Progress = silent
) -> PublishedEvaluation:
    """Evaluate routing, return interfaces, stopping and interventions on test prompts of both ranges.

    Publishes `evaluation/<name>` (the summary as JSON) and `evaluation/<name>/samples` (Parquet, one row per
    task and condition), or returns what is published for the same parameters and elements. `progress` counts
    task-conditions.
    """
    recipe = evaluation_recipe(params, skills.refs).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    core, renderer = open_skill_core(store, params, skills)
    evaluator = SkillEvaluator(core, renderer, open_pipeline(store, skills))
    chosen = params.evaluation
    tasks: dict[str, list[SkillTask]] = {
        range_: TaskMaker(params.phrases, params.division, split, range_).make(chosen.tasks, seed=chosen.seed)
        for range_, split in EVALUATED
    }
    samples, seconds = evaluator.run(tasks, seed=chosen.seed, progress=progress)
    summary = summarise(samples, chosen)
    summary["settings"] = params.model_dump(mode="json", by_alias=True)
    summary["elements"] = [str(ref) for ref in skills.refs]
    summary["accounting"] = {**asdict(core_accounts(core)), "program_bytes": _program_bytes(store, skills)}
    return publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_records(SkillSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[ref.version for ref in skills.refs],
        provenance={"subject": SUBJECT, "core": str(skills.core)},
        costs={"seconds": seconds},
        message=f"Evaluate {params.name} on {sum(summary['tasks'].values())} tasks",
    )


def find_skill_set(store: Store, params: SkillsParams) -> SkillSet:
    """The published set of these parameters; raises `ElementNotFound` when a part of it is missing."""
    catalog = store.catalog()

    def found(recipe: Recipe) -> Ref:
        row = catalog.find(recipe.fingerprint)
        if row is None:
            raise ElementNotFound(
                f"{store.url} lacks skills, or what was trained for them, of these parameters; run `cellar "
                "skill build` first"
            )
        return row.ref

    programs = {operation: found(program_recipe(params, operation)) for operation in OPERATIONS}
    tokenizer = found(tokenizer_recipe(params))
    controller, core = controller_recipe(params, tokenizer), core_recipe(params, tokenizer)
    return SkillSet(programs, tokenizer, found(controller), found(core))


def open_pipeline(store: Store, skills: SkillSet) -> Pipeline:
    """The controller and the programs behind their references."""
    return Pipeline(
        load_controller(store.read(skills.controller)),
        load_tokenizer(store, skills.tokenizer),
        {operation: load_program(store.read(ref)) for operation, ref in skills.programs.items()},
    )


def open_skill_core(store: Store, params: SkillsParams, skills: SkillSet) -> tuple[ResidualCore, Renderer]:
    """The frozen core and the renderer of its prompts and results."""
    tokenizer: Tokenizer = load_tokenizer(store, skills.tokenizer)
    core = load_core(store.read(skills.core))
    return core, Renderer(tokenizer, core.identity, params.tokens)


def load_skill_samples(payload: bytes) -> list[SkillSample]:
    """The samples of an evaluation; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, SkillSample, what="a table of skill samples")


def _program_bytes(store: Store, skills: SkillSet) -> int:
    rows = store.catalog().get_all([ref.version for ref in skills.programs.values()])
    return sum(row.length for row in rows.values())
