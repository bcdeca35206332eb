"""Small skills: few updates of a narrow core, which suffice where a result is attached slot by slot."""

from pathlib import Path

import pytest
import torch

from store import Store
from tasks.assembly import CoreArchitecture, ResidualCore
from tasks.corpus import Tokenizer
from tasks.skills import (
    Renderer,
    SkillSet,
    SkillsParams,
    TaskMaker,
    publish_programs,
    train_controller,
    train_core,
    train_skill_tokenizer,
)
from tasks.skills.params import ControllerParams, SkillCoreParams, SkillEvaluationParams, TokenParams
from tasks.skills.train import new_skill_core
from tasks.skills.vocabulary import learn_vocabulary
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

ARCHITECTURE = CoreArchitecture(
    width=64, iterations=2, hidden=32, kernel=3, dilations=(1, 2), correction_hidden=32
)
PARAMS = SkillsParams(
    tokens=TokenParams(vocab_size=400, prompts=400),
    controller=ControllerParams(width=32, steps=60, rows=48),
    core=SkillCoreParams(architecture=ARCHITECTURE, steps=60, rows=24, warmup_steps=10),
    evaluation=SkillEvaluationParams(tasks=60, resamples=200),
)


@pytest.fixture(scope="package")
def maker() -> TaskMaker:
    return TaskMaker(PARAMS.phrases, PARAMS.division, "train", "train")


@pytest.fixture(scope="package")
def tokenizer(maker: TaskMaker) -> Tokenizer:
    return learn_vocabulary(maker, PARAMS.tokens)


@pytest.fixture(scope="package")
def core(tokenizer: Tokenizer) -> ResidualCore:
    """A core in which every operator does something, as after training."""
    made = new_skill_core(PARAMS.core, PARAMS.tokens, tokenizer)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
            parameter.requires_grad_(False)
    return made.eval()


@pytest.fixture(scope="package")
def renderer(tokenizer: Tokenizer, core: ResidualCore) -> Renderer:
    return Renderer(tokenizer, core.identity, PARAMS.tokens)


def build(store: Store) -> SkillSet:
    """Publish and train a whole set."""
    tokenizer = train_skill_tokenizer(store, PARAMS)
    return SkillSet(
        publish_programs(store, PARAMS),
        tokenizer,
        train_controller(store, PARAMS, tokenizer=tokenizer),
        train_core(store, PARAMS, tokenizer=tokenizer),
    )


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder: Path = tmp_path_factory.mktemp("skills")
    return Store.create(f"file:{folder}/store")


@pytest.fixture(scope="package")
def skills(store: Store) -> SkillSet:
    return build(store)
