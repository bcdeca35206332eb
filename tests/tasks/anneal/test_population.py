"""Many alphas at once give what one alpha at a time gives, and nothing stays on the host."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Gemma2Config, Qwen3NextConfig

from tasks.anneal import Population, passages, plain_losses
from tasks.errors import TooLittleText, UnfitHost
from tasks.hosts import Host
from tasks.shadows import Shadow, new_shadow
from tests.host_parts import host_of

ALPHAS_PL = np.array([[0, 0, 0], [1, 1, 1], [0.3, 0.0, 1.2], [0.0, 0.9, 0.0], [1.2, 0.4, 0.7]])


@pytest.fixture
def ids_NT() -> Tensor:  # noqa: N802
    return torch.randint(0, 256, (4, 24), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("tokens", [24, 100, 10_000])
def test_a_population_scores_what_the_plain_loop_scores(
    host: Host, shadow: Shadow, ids_NT: Tensor, tokens: int
) -> None:
    population = Population(host, shadow, ids_NT, scored=10, tokens=tokens)
    found = population.losses(ALPHAS_PL)
    expected = plain_losses(host, shadow, ALPHAS_PL, ids_NT, scored=10)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert np.ptp(expected, axis=0).min() > 1e-2, "alphas make a difference here"
    assert not any(module._forward_hooks for module in host.model.modules())
    assert not any(module._forward_pre_hooks for module in host.model.modules())


def test_a_row_of_zeros_is_scored_as_the_host_itself_bit_for_bit(
    host: Host, shadow: Shadow, ids_NT: Tensor
) -> None:
    population = Population(host, shadow, ids_NT, scored=10)
    alone = population.losses(np.zeros((1, 3)))
    assert np.array_equal(population.losses(ALPHAS_PL)[0], alone[0])


@pytest.mark.parametrize(
    "config",
    [
        Gemma2Config(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            sliding_window=8,
        ),
        Qwen3NextConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            linear_num_value_heads=4,
            linear_num_key_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            mlp_only_layers=[0, 1, 2, 3],
        ),
    ],
    ids=["sliding windows and soft caps", "linear attention"],
)
def test_hybrid_hosts_are_read_in_parts_as_they_are_whole(config: object, ids_NT: Tensor) -> None:
    config.vocab_size, config.eos_token_id, config.pad_token_id = 256, 1, None  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    host = host_of(model)
    shadow = new_shadow(host, None, document="ab" * 32, seeds={})
    kinds = model.config.layer_types
    assert shadow.layers == tuple(i for i, kind in enumerate(kinds) if kind == "full_attention")
    draws = torch.Generator().manual_seed(3)
    for delta in shadow.deltas:
        delta.normal_(std=0.2, generator=draws)
    alphas_PL = np.array([[0.4] * len(shadow.layers), [1.2] * len(shadow.layers)])
    found = Population(host, shadow, ids_NT, scored=10).losses(alphas_PL)
    np.testing.assert_allclose(
        found, plain_losses(host, shadow, alphas_PL, ids_NT, scored=10), rtol=0, atol=1e-4
    )


def test_a_host_that_reads_parts_differently_is_refused(host: Host, shadow: Shadow, ids_NT: Tensor) -> None:
    plain = host.model.forward

    def capped(*given: object, **named: object) -> object:
        made = plain(*given, **named)
        made.logits = made.logits * 0.5
        return made

    host.model.forward = capped
    with pytest.raises(UnfitHost, match="nats away from the whole"):
        Population(host, shadow, ids_NT, scored=10)
    del host.model.model.norm
    with pytest.raises(UnfitHost, match="no last norm"):
        Population(host, shadow, ids_NT, scored=10)


def test_passages_are_spread_over_a_text(tmp_path: Path) -> None:
    found = passages(torch.arange(100), 4, 10)
    assert found[:, 0].tolist() == [0, 30, 60, 90]
    assert passages(torch.arange(25), 4, 10)[:, 0].tolist() == [0, 15]
    with pytest.raises(TooLittleText, match="no passage of 10"):
        passages(torch.arange(9), 4, 10)
