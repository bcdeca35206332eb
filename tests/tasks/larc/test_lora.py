"""LoRA with factors of each row's own, held against `peft`, one adapter at a time."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tasks.errors import BadQuestion, UnfitHost
from tasks.larc import (
    ExpectedCost,
    Learner,
    LoraLearner,
    Question,
    Session,
    begin,
    encode_residual,
    load_residual,
    load_session,
    new_slow_state,
    plain_energies,
    read,
    reset,
    save_session,
    shares_of_owners,
    update,
)
from tests.tasks.larc.conftest import WIDTH, TinyHost, close, llama, make_questions

peft = pytest.importorskip("peft", reason="the reference of LoRA comes with the test extra: pip install peft")
RANK = 3
OWNERS = [0, 1, 1, 0]
SITES = [("self_attn.q_proj", 0), ("self_attn.v_proj", 2), ("mlp.down_proj", 1)]
COSTS = ExpectedCost(torch.rand(4, 4, generator=torch.Generator().manual_seed(3)))


def factors(learner: Learner) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        0.3 * torch.randn(2, RANK, learner.inputs, generator=generator),
        0.3 * torch.randn(2, learner.outputs, RANK, generator=generator),
    )


def by_peft(
    question: Question, module: str, layer: int, A: Tensor, B: Tensor, costs_J: Tensor
) -> list[Tensor]:
    """Energies of a question with an adapter of peft, and gradients of its expected cost for A and B."""
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules=[f"model.layers.{layer}.{module}"])
    adapted = peft.get_peft_model(llama().model, config).eval()
    [lora] = [part for part in adapted.modules() if isinstance(part, peft.tuners.lora.Linear)]
    A_leaf, B_leaf = lora.lora_A["default"].weight, lora.lora_B["default"].weight
    with torch.no_grad():
        A_leaf.copy_(A)
        B_leaf.copy_(B)
    nothing = torch.zeros(1, WIDTH)
    energies = plain_energies(TinyHost(adapted.get_base_model()), question, nothing, nothing.T)
    loss = (torch.softmax(energies, -1) * costs_J).sum()
    return [energies.detach(), *torch.autograd.grad(loss, (A_leaf, B_leaf))]


@pytest.mark.parametrize(("module", "layer"), SITES)
def test_energies_and_gradients_equal_those_of_peft(host: TinyHost, module: str, layer: int) -> None:
    questions = make_questions(4)
    learner = LoraLearner(host, layer, module=module, tokens=64)
    A, B = factors(learner)
    energies, [found] = learner.gradients(questions, A, B, OWNERS, [COSTS], torch.ones(4))
    expected_A, expected_B = torch.zeros_like(A), torch.zeros_like(B)
    for place, (question, owner) in enumerate(zip(questions, OWNERS, strict=True)):
        plain, by_A, by_B = by_peft(question, module, layer, A[owner], B[owner], COSTS.costs_NJ[place])
        assert close(energies[place], plain)
        expected_A[owner] += by_A
        expected_B[owner] += by_B
    assert close(found.A_FrD, expected_A)
    assert close(found.B_FDr, expected_B)


def test_the_query_projection_has_as_many_values_as_the_residual(host: TinyHost) -> None:
    learner = LoraLearner(host)
    assert learner.inputs + learner.outputs == 2 * WIDTH
    assert learner.matched_rank(4) == 4
    narrow = LoraLearner(host, module="self_attn.k_proj")
    assert narrow.matched_rank(4) == round(4 * 64 / 48)
    assert LoraLearner(host, module="mlp.down_proj").matched_rank(1) == 1


def test_episodes_states_and_sessions_serve_it_as_well(host: TinyHost, tmp_path: Path) -> None:
    questions = make_questions(2)
    learner = LoraLearner(host, 1, module="mlp.down_proj")
    sizes = {"insertion": 1, "module": learner.module, "outputs": learner.outputs}
    episodes = [
        begin(new_slow_state(learner.inputs, seed=seed, deviation=0.3, **sizes), seed=seed) for seed in (0, 1)
    ]
    costs = ExpectedCost(COSTS.costs_NJ[:2])
    stepped, figures = update(learner, episodes, questions, [0, 1], costs, measure=True)
    assert torch.equal(stepped[0].A_rD, episodes[0].A_rD)
    assert figures.rose is not None
    assert not figures.rose.any()
    first = read(learner, episodes, questions, [0, 1])
    assert torch.equal(read(learner, [reset(one) for one in stepped], questions, [0, 1]), first)

    path = save_session(tmp_path / "a.session", Session("ab" * 32, {"a": stepped[0]}))
    again = load_session(path, host="ab" * 32, width=WIDTH).episodes["a"]
    assert torch.equal(again.B_Dr, stepped[0].B_Dr)
    assert again.bound.module == "mlp.down_proj"
    slow = load_residual(encode_residual(stepped[0].bound, "ab" * 32), width=WIDTH)
    assert (slow.module, slow.outputs, slow.width) == ("mlp.down_proj", WIDTH, 48)
    with pytest.raises(BadQuestion, match=r"act on mlp.down_proj of layer 1, the learner's before layer 1"):
        read(Learner(host, 1), stepped, questions, [0, 1])


def test_no_other_reader_of_the_host_meets_it(host: TinyHost, learner: Learner) -> None:
    questions, nothing = make_questions(2), torch.zeros(1, 1, WIDTH)
    before = learner.energies(questions, nothing, nothing.mT, [0, 0])
    lora = LoraLearner(host)
    lora.gradients(
        questions, *factors(lora), [0, 1], [ExpectedCost(COSTS.costs_NJ[:2])], shares_of_owners([0, 1])
    )
    assert torch.equal(learner.energies(questions, nothing, nothing.mT, [0, 0]), before)


@pytest.mark.parametrize("module", ["", "self_attn", "self_attn.nothing", "input_layernorm"])
def test_a_module_that_is_no_linear_one_is_refused(host: TinyHost, module: str) -> None:
    with pytest.raises(UnfitHost, match="has no linear module"):
        LoraLearner(host, module=module)
