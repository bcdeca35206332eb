"""The external residual and its consistency energy (FEM-ASM, residual operator).

Interface nodes carry states ``Z_i`` in R^D. Elements propose states ``v_e`` with weights ``w_e >= 0``. With
``W_i`` the sum of the weights at node ``i`` and ``vbar_i`` the weighted mean of its proposals::

    R_i = W_i / (W_i + eps) * (vbar_i - Z_i)        R_i = 0 exactly where W_i = 0
    Z_i <- Z_i + alpha R_i                           effective coefficient alpha W_i / (W_i + eps) in (0, 1]
    E(Z) = 1/2 sum_i sum_{e at i} w_e ||Z_i - v_e||^2

Everything here is a pure function of tensors; adapters, supports and learned operators live elsewhere.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Field:
    """What the supported elements say about a window of nodes.

    ``weight_BL`` float32, the total weight ``W_i`` of each node; ``mean_BLD`` float32, the mean proposal
    ``vbar_i``, zero where ``W_i`` is zero.
    """

    weight_BL: Tensor
    mean_BLD: Tensor


def gather_field(
    proposals_ED: Tensor, weight_E: Tensor, row_E: Tensor, node_E: Tensor, *, rows: int, nodes: int
) -> Field:
    """Sum the proposals of each node into its total weight and mean proposal.

    Args:
        proposals_ED: float, the adapted states ``v_e``.
        weight_E: float, ``w_e > 0``.
        row_E, node_E: int64, the batch row and node that element ``e`` supports, inside ``rows x nodes``.

    The sum is a set sum: element order only changes floating-point rounding.
    """
    width = proposals_ED.shape[-1]
    target_E = row_E * nodes + node_E
    weight_E = weight_E.to(proposals_ED.dtype)
    weight_N = proposals_ED.new_zeros(rows * nodes).index_add(0, target_E, weight_E)
    sum_ND = proposals_ED.new_zeros(rows * nodes, width).index_add(
        0, target_E, weight_E[:, None] * proposals_ED
    )
    safe_N = torch.where(weight_N > 0, weight_N, torch.ones_like(weight_N))
    mean_ND = sum_ND / safe_N[:, None]
    return Field(weight_N.view(rows, nodes), mean_ND.view(rows, nodes, width))


def external_residual(z_BLD: Tensor, field: Field, eps: float) -> Tensor:
    """Return ``R_BLD``; rows of nodes without weight are exactly zero."""
    weight_BL1 = field.weight_BL[..., None]
    share_BL1 = weight_BL1 / (weight_BL1 + eps)
    residual_BLD = share_BL1 * (field.mean_BLD - z_BLD)
    return torch.where(weight_BL1 > 0, residual_BLD, torch.zeros_like(residual_BLD))


def substep(z_BLD: Tensor, residual_BLD: Tensor, alpha: float) -> Tensor:
    """One deterministic step towards the proposals; for ``0 < alpha <= 1`` it cannot raise the energy."""
    return z_BLD + alpha * residual_BLD


def energy(z_BLD: Tensor, proposals_ED: Tensor, weight_E: Tensor, row_E: Tensor, node_E: Tensor) -> Tensor:
    """External consistency energy ``E(Z)`` for fixed proposals, a scalar."""
    gap_ED = z_BLD[row_E, node_E] - proposals_ED
    return 0.5 * (weight_E * gap_ED.square().sum(-1)).sum()
