"""Training of controller and core: what few updates give, and that they give the same again."""

from pathlib import Path

import numpy as np
import pytest

from tasks.checkpoint import Checkpoints, checkpoint_path
from tasks.corpus import Tokenizer
from tasks.skills import Renderer, SkillsParams, TaskMaker, load_controller
from tasks.skills.controller import Noise, chosen, train_controller
from tasks.skills.operands import MARK
from tasks.skills.params import ControllerParams, SkillCoreParams
from tasks.skills.phrasing import phrasings
from tasks.skills.train import new_skill_core, train_skill_core
from tasks.skills.vocabulary import learn_vocabulary
from tests.tasks.skills.conftest import ARCHITECTURE, PARAMS


def trained(params: SkillCoreParams, tokenizer: Tokenizer, maker: TaskMaker, **more: object) -> bytes:
    core = new_skill_core(params, PARAMS.tokens, tokenizer)
    renderer = Renderer(tokenizer, core.identity, PARAMS.tokens)
    train_skill_core(core, renderer, maker, params, **more)  # type: ignore[arg-type]
    return core.to_bytes()


def test_an_interrupted_training_of_the_core_ends_with_the_same_bytes(
    tokenizer: Tokenizer, maker: TaskMaker, tmp_path: Path
) -> None:
    params = SkillCoreParams(architecture=ARCHITECTURE, steps=6, rows=4, warmup_steps=2)
    kept = Checkpoints(tmp_path, "a" * 64, 0.0)

    def stop(done: int, total: int, **figures: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(params, tokenizer, maker, progress=stop, checkpoints=kept)
    assert checkpoint_path(tmp_path, "a" * 64).is_file()

    assert trained(params, tokenizer, maker, checkpoints=kept) == trained(params, tokenizer, maker)


def test_a_controller_follows_from_its_inputs_and_reads_back(tokenizer: Tokenizer, maker: TaskMaker) -> None:
    params = ControllerParams(width=16, steps=5, rows=10)
    one, two = (train_controller(params, maker, tokenizer) for _ in range(2))
    other = train_controller(ControllerParams(width=16, steps=5, rows=10, seed=8), maker, tokenizer)
    assert one.to_bytes() == two.to_bytes() != other.to_bytes()
    phrases = [f"what is {MARK} plus {MARK}?", ""]
    read = load_controller(one.to_bytes())
    assert read.route(phrases, tokenizer).tolist() == one.route(phrases, tokenizer).tolist()


def test_a_route_does_not_depend_on_what_else_is_routed(tokenizer: Tokenizer, maker: TaskMaker) -> None:
    controller = train_controller(ControllerParams(width=16, steps=2, rows=10), maker, tokenizer)
    short, long = f"{MARK} plus {MARK}", f"would you please divide {MARK} by {MARK} for all of us"
    assert (
        controller.route([short, long], tokenizer)[0].tolist()
        == controller.route([short], tokenizer)[0].tolist()
    )


def test_noise_keeps_most_words_and_adds_none_of_a_training_phrasing(tokenizer: Tokenizer) -> None:
    rng = np.random.default_rng(1)
    phrase = f"take {MARK} and add {MARK}"
    noise = Noise(tokenizer, 0.5)
    kept = [word for _ in range(200) for word in noise.apply(phrase, rng).split() if word in phrase.split()]
    assert 0.7 < len(kept) / (200 * len(phrase.split())) < 0.95
    drawn = {noise.word(rng).rstrip(",:?") for _ in range(500)}
    assert len(drawn) > 300
    assert drawn.isdisjoint({"plus", "minus", "add", "times", "divided", "mod", "what", "is"})


@pytest.mark.nightly
def test_the_controller_routes_every_phrasing_that_it_was_not_trained_on(maker: TaskMaker) -> None:
    params = SkillsParams()
    tokens = learn_vocabulary(maker, params.tokens)
    controller = train_controller(params.controller, maker, tokens)
    asked = [phrasing for split in ("validation", "test") for phrasing in phrasings(split)]
    masked = [phrasing.template.format(a=MARK, b=MARK) for phrasing in asked]
    assert chosen(controller.route(masked, tokens)) == [phrasing.operation for phrasing in asked]
