"""A tiny frozen host whose tokens are bytes, and made-up CI jobs with every kind of tie."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tasks.larc import Learner, SlowState, new_slow_state
from tasks.replay.jobs import LABELS, Job
from tasks.replay.params import ReplayParams
from tasks.replay.policy import Policy
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

END = 256
WIDTH = 32
SECOND = 1_000_000
START = 1_757_000_000 * SECOND


@dataclass(frozen=True)
class TinyHost:
    """What a learner needs of a host."""

    model: Any
    dtype: torch.dtype = torch.float32
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - immutable
    width: int = WIDTH
    layers: int = 2


@pytest.fixture(scope="package")
def policy() -> Policy:
    config = LlamaConfig(
        vocab_size=END + 8,
        hidden_size=WIDTH,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.15,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = LlamaForCausalLM(config).eval().requires_grad_(requires_grad=False)
    return Policy(Learner(TinyHost(model)), lambda text: list(text.encode()), END)


@pytest.fixture
def original() -> SlowState:
    return new_slow_state(WIDTH, seed=1)


@pytest.fixture
def task(original: SlowState) -> SlowState:
    """A slow state with a B of its own, as after a fit."""
    generator = torch.Generator().manual_seed(2)
    return replace(original, B_Dr=0.1 * torch.randn(WIDTH, 4, generator=generator), version=5)


def job(number: int = 1, **changes: Any) -> Job:
    plain = Job(
        id=str(number),
        repository="octo/repo",
        workflow_id="7",
        workflow=".github/workflows/ci.yml",
        event="push",
        name="tests",
        commit="c0ffee0123",
        started_us=START,
        completed_us=START + 60 * SECOND,
        label="success",
    )
    return replace(plain, **changes)


def jobs(count: int, *, seed: int = 0, repositories: int = 1, spread: int = 60) -> list[Job]:
    """Jobs in whole seconds, so that many start and complete together; some have no length."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        start = START + draw.randrange(spread) * SECOND
        made.append(
            job(
                number,
                repository=f"octo/repo{draw.randrange(repositories)}",
                name=draw.choice(["tests", "lint", "docs"]),
                commit=f"{draw.randrange(4):07x}",
                started_us=start,
                completed_us=start + draw.choice([0, 0, 1, 5, 20]) * SECOND,
                label=draw.choice(LABELS),
            )
        )
    return made


def small(**changes: Any) -> ReplayParams:
    return ReplayParams.model_validate({"training_jobs": 12, "audit_jobs": 12, **changes})
