"""Lean layers compute what the host's own do, and are taken only where they do."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    OlmoConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from tasks.anneal import Population, layers, plain_losses
from tasks.anneal.layers import HostLayer, LeanLayer
from tasks.anneal.suffix import Suffix
from tasks.hosts import Host
from tasks.shadows import Shadow, attached, new_shadow
from tests.host_parts import host_of

ALPHAS_PL = np.array([[0, 0, 0], [1, 1, 1], [0.3, 0.0, 1.2], [0.0, 0.9, 0.4]])
SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": None,
}


def made_host(config: Any, dtype: torch.dtype = torch.float32) -> Host:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config).to(dtype).eval().requires_grad_(False)
    return host_of(model, dtype)


def made_shadow(host: Host, layers: tuple[int, ...] = (1, 2, 3)) -> Shadow:
    zero = new_shadow(host, layers, document="ab" * 32, seeds={})
    draws = torch.Generator().manual_seed(3)
    return replace(zero, deltas=tuple(0.1 * torch.randn(d.shape, generator=draws) for d in zero.deltas))


@pytest.fixture
def ids_NT() -> Tensor:  # noqa: N802
    return torch.randint(0, 64, (3, 20), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        MistralConfig(**SIZES, sliding_window=None),
        Qwen2Config(**SIZES),
        Qwen3Config(**SIZES),
    ],
    ids=lambda config: config.model_type,
)
@pytest.mark.parametrize("scored", [6, 19])
def test_layers_of_a_known_kind_are_lean_and_lose_what_the_whole_host_loses(
    config: Any, scored: int, ids_NT: Tensor
) -> None:
    host = made_host(config)
    shadow = made_shadow(host)
    suffix = Suffix(host, shadow, ids_NT[:1], lean=True)
    assert {type(layer) for layer in suffix._layers} == {LeanLayer}
    found = Population(host, shadow, ids_NT, scored=scored).losses(ALPHAS_PL)
    expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=scored)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.ptp(expected, axis=0).min() > 1e-2, "alphas make a difference here"


def test_one_layer_alone_is_the_first_and_the_last(ids_NT: Tensor) -> None:
    host = made_host(LlamaConfig(**SIZES))
    shadow = made_shadow(host, (3,))
    found = Population(host, shadow, ids_NT, scored=6).losses(ALPHAS_PL[:, :1])
    expected = plain_losses(host, shadow, ALPHAS_PL[:, :1], ids_NT, scored=6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_in_bfloat16_lean_layers_are_as_near_as_its_rounding(ids_NT: Tensor) -> None:
    host = made_host(LlamaConfig(**SIZES), torch.bfloat16)
    shadow = made_shadow(host)
    found = Population(host, shadow, ids_NT, scored=6).losses(ALPHAS_PL)
    expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.1)


def test_a_shadow_that_is_attached_stays_at_work(ids_NT: Tensor) -> None:
    host = made_host(LlamaConfig(**SIZES))
    shadow, below = made_shadow(host), made_shadow(host).scaled([0.7, 0.0, 1.1])
    alone = Population(host, shadow, ids_NT, scored=6).losses(ALPHAS_PL)
    with attached(host, below):
        found = Population(host, shadow, ids_NT, scored=6).losses(ALPHAS_PL)
        expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.abs(found - alone).max() > 1e-2


def test_layers_that_only_look_alike_are_left_to_the_host(ids_NT: Tensor) -> None:
    """Granite's have the same parts, and scale what they add."""
    host = made_host(GraniteConfig(**SIZES, residual_multiplier=0.2))
    shadow = made_shadow(host)
    assert isinstance(Suffix(host, shadow, ids_NT[:1], lean=True)._layers[0], LeanLayer)
    population = Population(host, shadow, ids_NT, scored=6)
    assert {type(layer) for layer in population._suffix._layers} == {HostLayer}
    expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=6)
    np.testing.assert_allclose(population.losses(ALPHAS_PL), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("config", [GemmaConfig(**SIZES), OlmoConfig(**SIZES)])
def test_layers_whose_norms_are_of_another_kind_are_left_to_the_host(
    config: PretrainedConfig, ids_NT: Tensor
) -> None:
    """Gemma's and OLMo's bear the names of Llama's."""
    host = made_host(config)
    shadow = made_shadow(host)
    population = Population(host, shadow, ids_NT, scored=6)
    assert {type(layer) for layer in population._suffix._layers} == {HostLayer}
    expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=6)
    np.testing.assert_allclose(population.losses(ALPHAS_PL), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_in_parts_are_the_bits_of_norms_at_once(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = torch.Generator().manual_seed(1)
    norm = SimpleNamespace(weight=torch.randn(24, generator=draws).to(dtype), variance_epsilon=1e-5)
    states_rTD = torch.randn(3, 7, 24, generator=draws).to(dtype)
    at_once = layers._normed(norm, states_rTD)
    monkeypatch.setattr(layers, "_IN_CACHE", 5 * 24)
    assert torch.equal(layers._normed(norm, states_rTD), at_once)
    assert torch.equal(layers._normed(norm, states_rTD[:, :2]), at_once[:, :2])
