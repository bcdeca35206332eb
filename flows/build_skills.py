"""Flow `build-skills`: five programs, and the tokenizer, controller and core that go with them."""

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from store import Ref
from tasks.skills.params import SkillsParams


def _publish(settings: Settings, params: SkillsParams) -> list[str]:
    """The programs in the order of the operations, then the tokenizer."""
    from tasks.skills import publish_programs, train_skill_tokenizer

    store = open_store(settings)
    programs = publish_programs(store, params)
    return [str(ref) for ref in (*programs.values(), train_skill_tokenizer(store, params))]


def _train_controller(settings: Settings, params: SkillsParams, tokenizer: str) -> str:
    from tasks.skills.step import train_controller

    prepare_threads(settings)
    with watch.progress("train controller", "updates") as progress:
        ref = train_controller(
            open_store(settings), params, tokenizer=Ref.parse(tokenizer), progress=progress
        )
    return str(ref)


def _train_core(settings: Settings, params: SkillsParams, tokenizer: str) -> str:
    from tasks.skills.step import train_core

    prepare_threads(settings)
    with watch.progress("train skills core", "updates") as progress:
        ref = train_core(
            open_store(settings),
            params,
            tokenizer=Ref.parse(tokenizer),
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return str(ref)


publish_task = bind(_publish, name="publish skills")
controller_task = bind(_train_controller, name="train skills controller")
core_task = bind(_train_core, name="train skills core")


def build(params: SkillsParams, settings: Settings) -> dict[str, list[str]]:
    """Publish or find a whole set of skills; for use inside a flow."""
    *programs, tokenizer = publish_task(settings, params)
    controller = controller_task(settings, params, tokenizer)
    core = core_task(settings, params, tokenizer)
    return {"skills": programs, "trained": [tokenizer, controller, core]}


def _flow(params: Params, settings: Settings) -> dict[str, list[str]]:
    """Build the arithmetic skills; what is published already is found.

    Returns the references of the programs (`skills`), and of tokenizer, controller and core (`trained`).
    """
    return build(params.skills, settings)


build_skills = flow(_flow, name="build-skills")
