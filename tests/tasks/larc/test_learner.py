"""Energies of packed trees against one plain sequence per candidate, and the gradients that flow back."""

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tasks.errors import BadQuestion, UnfitHost
from tasks.larc import ExpectedCost, Learner, Question, RightCandidate, plain_energies, shares_of_owners
from tests.tasks.larc.conftest import (
    EOS,
    LAYERS,
    VOCABULARY,
    WIDTH,
    TinyHost,
    close,
    gpt2,
    llama,
    make_questions,
    permuted,
    qwen,
    random_factors,
)

OWNERS = [0, 2, 1, 1, 0, 2, 2]


def plainly(host: TinyHost, questions: list[Question], A: Tensor, B: Tensor, insertion: int) -> Tensor:
    return torch.stack(
        [
            plain_energies(host, question, A[owner], B[owner], insertion=insertion)
            for question, owner in zip(questions, OWNERS, strict=True)
        ]
    )


@pytest.mark.parametrize("tokens", [16, 64, 4096])
@pytest.mark.parametrize("insertion", range(LAYERS))
def test_packed_trees_equal_the_plain_loop(host: TinyHost, insertion: int, tokens: int) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    found = Learner(host, insertion, tokens=tokens).energies(questions, A, B, OWNERS)
    assert close(found, plainly(host, questions, A, B, insertion))
    assert found.dtype == torch.float32


@pytest.mark.parametrize("make", [qwen, gpt2], ids=["qwen2", "gpt2"])
def test_other_families_equal_the_plain_loop(make: Any) -> None:
    host = make()
    questions, (A, B) = make_questions(7), random_factors(3)
    assert close(Learner(host).energies(questions, A, B, OWNERS), plainly(host, questions, A, B, 0))


def test_eager_attention_equals_the_plain_loop() -> None:
    host = llama(attn_implementation="eager")
    questions, (A, B) = make_questions(7), random_factors(3)
    assert close(Learner(host).energies(questions, A, B, OWNERS), plainly(host, questions, A, B, 0))


def test_a_bfloat16_host_is_near_its_float32_twin() -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    host = llama(torch.bfloat16)
    found = Learner(host).energies(questions, A, B, OWNERS)
    assert found.dtype == torch.float32
    assert close(found, plainly(llama(), questions, A, B, 0), 0.3)


@pytest.mark.parametrize("insertion", [0, 2])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_equal_those_of_the_plain_loop(host: TinyHost, insertion: int, checkpointing: bool) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    costs = ExpectedCost(torch.rand(7, 4, generator=torch.Generator().manual_seed(3)))
    weights = shares_of_owners(OWNERS)
    learner = Learner(host, insertion, tokens=64, checkpointing=checkpointing)
    energies, [found] = learner.gradients(questions, A, B, OWNERS, [costs], weights)

    A_leaf, B_leaf = A.clone().requires_grad_(), B.clone().requires_grad_()
    plain = plainly(host, questions, A_leaf, B_leaf, insertion)
    losses = costs.losses(plain, torch.arange(7))
    by_A, by_B = torch.autograd.grad((losses * weights).sum(), (A_leaf, B_leaf))
    assert close(energies, plain.detach())
    assert close(found.losses_N, losses.detach())
    assert close(found.A_FrD, by_A)
    assert close(found.B_FDr, by_B)


def test_energies_are_differentiable_as_a_whole(host: TinyHost) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    labels = RightCandidate(torch.tensor([0, 1, 2, 3, 0, 1, 2]))
    weights = shares_of_owners(OWNERS)
    learner = Learner(host, tokens=64)
    _, [expected] = learner.gradients(questions, A, B, OWNERS, [labels], weights)
    A.requires_grad_(), B.requires_grad_()
    energies = learner.energies(questions, A, B, OWNERS)
    (labels.losses(energies, torch.arange(7)) * weights).sum().backward()
    assert A.grad is not None
    assert B.grad is not None
    assert close(A.grad, expected.A_FrD, 1e-6)
    assert close(B.grad, expected.B_FDr, 1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_recomputing_changes_no_bit(dtype: torch.dtype) -> None:
    host, questions, (A, B) = llama(dtype), make_questions(7), random_factors(3)
    costs = ExpectedCost(torch.rand(7, 4, generator=torch.Generator().manual_seed(3)))
    given = questions, A, B, OWNERS, [costs, RightCandidate(torch.zeros(7, dtype=torch.int64))]
    kept, again = (
        Learner(host, 1, tokens=64, checkpointing=checkpointing).gradients(*given, shares_of_owners(OWNERS))
        for checkpointing in (False, True)
    )
    assert torch.equal(kept[0], again[0])
    for one, other in zip(kept[1], again[1], strict=True):
        assert torch.equal(one.A_FrD, other.A_FrD)
        assert torch.equal(one.B_FDr, other.B_FDr)


@pytest.mark.parametrize("insertion", range(LAYERS))
def test_no_gradient_is_kept_for_what_lies_below(host: TinyHost, insertion: int) -> None:
    kept: list[bool] = []
    handles = [
        layer.mlp.register_forward_hook(lambda _, given, output: kept.append(output.requires_grad))
        for layer in host.model.get_decoder().layers
    ]
    learner = Learner(host, insertion)
    kept.clear()
    learner.gradients(
        make_questions(1), *random_factors(1), [0], [ExpectedCost(torch.eye(4)[:1])], torch.ones(1)
    )
    for handle in handles:
        handle.remove()
    assert kept == [layer >= insertion for layer in range(LAYERS)]


def test_a_sliding_window_bounds_what_is_read() -> None:
    host, question = llama(), Question((2,) * 19, ((3, EOS),))
    nothing = torch.zeros(1, 1, WIDTH)
    host.model.config.sliding_window = 20
    assert Learner(host).energies([question], nothing, nothing.mT, [0]).isfinite().all()
    host.model.config.sliding_window = 19
    with pytest.raises(BadQuestion, match="20 tokens deep; the host reads 19"):
        Learner(host).energies([question], nothing, nothing.mT, [0])


def test_several_feedbacks_share_a_forward_pass_and_stay_apart(learner: Learner) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    weights = shares_of_owners(OWNERS)
    first = ExpectedCost(torch.rand(7, 4, generator=torch.Generator().manual_seed(3)))
    second = RightCandidate(torch.zeros(7, dtype=torch.int64))
    _, both = learner.gradients(questions, A, B, OWNERS, [first, second], weights)
    for feedback, found in zip((first, second), both, strict=True):
        _, [alone] = learner.gradients(questions, A, B, OWNERS, [feedback], weights)
        assert torch.equal(found.A_FrD, alone.A_FrD)
        assert torch.equal(found.B_FDr, alone.B_FDr)
        assert torch.equal(found.losses_N, alone.losses_N)


def test_permuted_rows_give_permuted_energies_to_the_last_bit(host: TinyHost) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    learner = Learner(host, tokens=96)
    order = [3, 6, 0, 5, 2, 1, 4]
    found = learner.energies(questions, A, B, OWNERS)
    again = learner.energies(permuted(questions, order), A, B, permuted(OWNERS, order))
    assert torch.equal(again, found[order])


def test_one_owners_feedback_never_changes_anothers_gradient(host: TinyHost) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    learner, weights = Learner(host, tokens=96), shares_of_owners(OWNERS)
    costs = torch.rand(7, 4, generator=torch.Generator().manual_seed(3))
    other = costs.clone()
    other[[row for row, owner in enumerate(OWNERS) if owner == 1]] = torch.tensor([9.0, -3.0, 0.0, 1.0])
    _, [one] = learner.gradients(questions, A, B, OWNERS, [ExpectedCost(costs)], weights)
    _, [two] = learner.gradients(questions, A, B, OWNERS, [ExpectedCost(other)], weights)
    for owner in (0, 2):
        assert torch.equal(one.A_FrD[owner], two.A_FrD[owner])
        assert torch.equal(one.B_FDr[owner], two.B_FDr[owner])
    assert not torch.equal(one.A_FrD[1], two.A_FrD[1])


def test_one_owners_factors_change_no_bit_of_anothers_energies_and_gradients(host: TinyHost) -> None:
    questions, (A, B) = make_questions(7), random_factors(3)
    learner, weights = Learner(host, tokens=96), shares_of_owners(OWNERS)
    costs = ExpectedCost(torch.rand(7, 4, generator=torch.Generator().manual_seed(3)))
    others = [row for row, owner in enumerate(OWNERS) if owner != 1]
    energies, [one] = learner.gradients(questions, A, B, OWNERS, [costs], weights)
    A[1], B[1] = 3 * A[1], B[1] - 0.5
    changed, [two] = learner.gradients(questions, A, B, OWNERS, [costs], weights)
    assert torch.equal(energies[others], changed[others])
    for owner in (0, 2):
        assert torch.equal(one.A_FrD[owner], two.A_FrD[owner])
        assert torch.equal(one.B_FDr[owner], two.B_FDr[owner])
    assert not torch.equal(energies, changed)


TOKENS = st.lists(st.integers(2, 4), max_size=4).map(tuple)
"""Few tokens, so that answers begin alike, continue each other and are equal."""


@given(prompt=TOKENS, answers=st.lists(TOKENS, min_size=1, max_size=5), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_equals_its_sequences(
    host: TinyHost, learner: Learner, prompt: tuple[int, ...], answers: list[tuple[int, ...]], seed: int
) -> None:
    question = Question((5, *prompt), tuple((*answer, EOS) for answer in answers))
    A, B = random_factors(1, seed=seed)
    [found] = learner.energies([question], A, B, [0])
    assert close(found, plain_energies(host, question, A[0], B[0]))


def test_a_host_that_ignores_the_mask_is_refused(host: TinyHost) -> None:
    def plain(mask_n1TT: Tensor) -> Tensor:
        return torch.ones(mask_n1TT.shape[0], mask_n1TT.shape[-1], dtype=torch.int64)

    class Deaf(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.config = llama().model, host.model.config

        def get_decoder(self) -> Any:
            decoder = self.inner.get_decoder()
            return lambda *, attention_mask, **given: decoder(attention_mask=plain(attention_mask), **given)

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def get_output_embeddings(self) -> Any:
            return self.inner.get_output_embeddings()

        def forward(self, **given: Any) -> Any:
            return self.inner(**given)

    with pytest.raises(UnfitHost, match="ignores a 4-D attention mask"):
        Learner(TinyHost(Deaf()))


def test_a_host_that_ignores_positions_is_refused(host: TinyHost) -> None:
    model = llama().model
    decoder = model.get_decoder()
    inner = decoder.forward
    decoder.forward = lambda *, position_ids=None, **given: inner(**given)
    with pytest.raises(UnfitHost, match="nats per token apart"):
        Learner(TinyHost(model))


def test_a_host_without_embeddings_is_refused() -> None:
    with pytest.raises(UnfitHost, match="float32 or bfloat16"):
        Learner(TinyHost(llama().model, dtype=torch.float16))
    with pytest.raises(UnfitHost, match="has 3 decoder layers"):
        Learner(llama(), LAYERS)


@pytest.mark.parametrize(
    ("questions", "factors", "owners", "said"),
    [
        ([], 1, [], "no question"),
        (make_questions(1), 1, [1], "owner from 0 to 0"),
        (make_questions(1), 1, [], "owner from 0 to 0"),
        (make_questions(1) + make_questions(1, candidates=3), 1, [0, 0], "equally many candidates"),
        ([Question((2, VOCABULARY), ((3, EOS),))], 1, [0], "holds token 97"),
        ([Question((2, -1), ((3, EOS),))], 1, [0], "holds token -1"),
        ([Question((2,) * 128, ((3, EOS),))], 1, [0], "129 tokens deep"),
    ],
)
def test_what_does_not_fit_is_refused(
    learner: Learner, questions: list[Question], factors: int, owners: list[int], said: str
) -> None:
    with pytest.raises(BadQuestion, match=said):
        learner.energies(questions, *random_factors(factors), owners)


def test_factors_of_another_width_or_dtype_are_refused(learner: Learner) -> None:
    [question] = make_questions(1)
    A, B = random_factors(1)
    for wrong in ((A[..., 1:], B[:, 1:]), (A.double(), B.double()), (A[0], B[0]), (A, A)):
        with pytest.raises(BadQuestion, match=f"takes float32 \\(F, r, {WIDTH}\\)"):
            learner.energies([question], *wrong, [0])


def test_feedback_that_does_not_fit_is_refused(learner: Learner) -> None:
    questions, (A, B), weights = make_questions(2), random_factors(1), torch.ones(2)
    for wrong in (
        ExpectedCost(torch.zeros(2, 3)),
        ExpectedCost(torch.tensor([[0, 1, 2, torch.nan]] * 2)),
        RightCandidate(torch.tensor([0, 4])),
        RightCandidate(torch.tensor([0])),
    ):
        with pytest.raises(BadQuestion, match="give 2 questions"):
            learner.gradients(questions, A, B, [0, 0], [wrong], weights)
