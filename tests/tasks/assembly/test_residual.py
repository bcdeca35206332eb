"""The residual operator: exact zeros, a set sum, an energy that never rises."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.assembly import energy, external_residual, gather_field, substep

seeds = st.integers(0, 10**6)


def problem(seed: int, count: int = 9) -> tuple[torch.Tensor, ...]:
    """States (2, 5, 8) in float64 and `count` elements."""
    g = torch.Generator().manual_seed(seed)
    z_BLD = torch.randn(2, 5, 8, generator=g, dtype=torch.float64)
    proposals_ED = torch.randn(count, 8, generator=g, dtype=torch.float64)
    weight_E = torch.rand(count, generator=g, dtype=torch.float64) + 0.01
    row_E = torch.randint(2, (count,), generator=g)
    node_E = torch.randint(5, (count,), generator=g)
    return z_BLD, proposals_ED, weight_E, row_E, node_E


@given(seeds)
def test_a_node_without_elements_gets_a_residual_of_exactly_zero(seed: int) -> None:
    z_BLD, proposals_ED, weight_E, row_E, node_E = problem(seed, count=4)
    field = gather_field(proposals_ED, weight_E, row_E, node_E, rows=2, nodes=5)
    residual_BLD = external_residual(z_BLD, field, eps=0.1)
    free_BL = torch.ones(2, 5, dtype=torch.bool)
    free_BL[row_E, node_E] = False
    assert (residual_BLD[free_BL] == 0).all()
    assert (residual_BLD[~free_BL] != 0).any(-1).all()


@given(seeds)
def test_the_residual_is_the_weighted_mean_gap_softened_by_eps(seed: int) -> None:
    z_BLD, proposals_ED, weight_E, _, _ = problem(seed, count=3)
    here = torch.zeros(3, dtype=torch.int64)
    field = gather_field(proposals_ED, weight_E, here, here, rows=2, nodes=5)
    total = weight_E.sum()
    mean_D = (weight_E[:, None] * proposals_ED).sum(0) / total
    expected_D = total / (total + 0.3) * (mean_D - z_BLD[0, 0])
    torch.testing.assert_close(external_residual(z_BLD, field, eps=0.3)[0, 0], expected_D)


@given(seeds, st.floats(0.01, 1.0), st.floats(1e-3, 10.0))
def test_the_substep_never_raises_the_energy(seed: int, alpha: float, eps: float) -> None:
    z_BLD, *elements = problem(seed)
    field = gather_field(*elements, rows=2, nodes=5)
    before = energy(z_BLD, *elements)
    after = energy(substep(z_BLD, external_residual(z_BLD, field, eps), alpha), *elements)
    assert after <= before * (1 + 1e-12)


@given(seeds, st.floats(0.05, 1.0))
def test_with_vanishing_eps_the_excess_energy_contracts_by_one_minus_alpha_squared(
    seed: int, alpha: float
) -> None:
    z_BLD, *elements = problem(seed)
    field = gather_field(*elements, rows=2, nodes=5)
    least = energy(torch.where(field.weight_BL[..., None] > 0, field.mean_BLD, z_BLD), *elements)
    stepped_BLD = substep(z_BLD, external_residual(z_BLD, field, eps=1e-14), alpha)
    before, after = energy(z_BLD, *elements) - least, energy(stepped_BLD, *elements) - least
    assert float(after) == pytest.approx(float(before) * (1 - alpha) ** 2, rel=1e-6, abs=1e-9)


def test_alpha_of_a_quarter_leaves_the_stated_share_of_the_excess() -> None:
    z_BLD, *elements = problem(3)
    field = gather_field(*elements, rows=2, nodes=5)
    least = energy(torch.where(field.weight_BL[..., None] > 0, field.mean_BLD, z_BLD), *elements)
    stepped_BLD = substep(z_BLD, external_residual(z_BLD, field, eps=1e-14), 0.25)
    share = (energy(stepped_BLD, *elements) - least) / (energy(z_BLD, *elements) - least)
    assert float(share) == pytest.approx(0.5625, rel=1e-9)
