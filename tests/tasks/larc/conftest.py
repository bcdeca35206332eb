"""Tiny frozen hosts with random weights, large enough that each token changes what follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from tasks.larc import Learner, Question
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

VOCABULARY, WIDTH, LAYERS = 97, 32, 3
EOS = 1
CPU = torch.device("cpu")


@dataclass(frozen=True)
class TinyHost:
    """What a learner needs of a host."""

    model: Any
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    width: int = WIDTH
    layers: int = LAYERS


def llama(dtype: torch.dtype = torch.float32, **changes: Any) -> TinyHost:
    config = LlamaConfig(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "intermediate_size": 48,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "initializer_range": 0.2,
            "tie_word_embeddings": True,
            **changes,
        }
    )
    return TinyHost(_frozen(LlamaForCausalLM, config, dtype), dtype)


def qwen() -> TinyHost:
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.2,
    )
    return TinyHost(_frozen(Qwen2ForCausalLM, config, torch.float32))


def gpt2() -> TinyHost:
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=4,
        n_positions=128,
        initializer_range=0.2,
    )
    return TinyHost(_frozen(GPT2LMHeadModel, config, torch.float32))


def _frozen(kind: Any, config: Any, dtype: torch.dtype) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = kind(config).to(dtype).eval()
    return model.requires_grad_(requires_grad=False)


@pytest.fixture(scope="package")
def host() -> TinyHost:
    return llama()


@pytest.fixture(scope="package")
def learner(host: TinyHost) -> Learner:
    return Learner(host)


def make_questions(count: int, *, candidates: int = 4, seed: int = 0) -> list[Question]:
    """Questions of many lengths; some answers begin alike, and some are one token long."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> tuple[int, ...]:
        length = int(torch.randint(low, high + 1, (1,), generator=generator))
        return tuple(torch.randint(2, VOCABULARY, (length,), generator=generator).tolist())

    questions = []
    for _ in range(count):
        shared = draw(1, 3)
        answers = [(*shared, *draw(0, 5), EOS) for _ in range(candidates - 1)]
        questions.append(Question(draw(3, 24), (*answers, (*draw(0, 4), EOS))))
    return questions


def random_factors(count: int, *, rank: int = 4, size: float = 0.2, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        size * torch.randn(count, rank, WIDTH, generator=generator),
        size * torch.randn(count, WIDTH, rank, generator=generator),
    )


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> bool:
    return found.shape == expected.shape and float((found - expected).abs().max()) <= tolerance


def permuted(items: Sequence[Any], order: Sequence[int]) -> list[Any]:
    return [items[place] for place in order]
