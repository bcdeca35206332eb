"""The learned operators of an iteration: the causal local operator S and the bounded correction P (FEM-ASM).

Neither uses attention. S mixes a node with a few earlier nodes at fixed distances, then maps every node by
itself; P reads a node and its external residual. Both are shared by all iterations of a core.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PastBHD = Tensor


class CausalMixing(nn.Module):
    """A causal depthwise filter: ``y_i = sum_k tap_k * x_(i - k * dilation)``, zeros before node 0."""

    def __init__(self, width: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.reach = (kernel - 1) * dilation
        # Starts at the identity: identities of tokens are codes, and a blend of codes is the code of
        # something else.
        self.taps_KD = nn.Parameter(F.pad(torch.ones(1, width), (0, 0, 0, kernel - 1)))

    def forward(self, x_BLD: Tensor, past_BHD: PastBHD | None) -> tuple[Tensor, PastBHD]:
        """Filter a window of nodes.

        Args:
            past_BHD: the `reach` inputs before the window, or None at the start of a sequence.

        Returns the filtered window and the past of the window that follows it.
        """
        if past_BHD is None:
            past_BHD = x_BLD.new_zeros(x_BLD.shape[0], self.reach, x_BLD.shape[2])
        seen = torch.cat([past_BHD, x_BLD], 1)
        length = x_BLD.shape[1]
        mixed = x_BLD * self.taps_KD[0]
        for k in range(1, self.taps_KD.shape[0]):
            first = self.reach - k * self.dilation
            mixed = mixed + seen[:, first : first + length] * self.taps_KD[k]
        return mixed, seen[:, length:]


class LocalLayer(nn.Module):
    """One residual layer of S: causal mixing, then a gated map of each node."""

    def __init__(self, width: int, hidden: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.mixing = CausalMixing(width, kernel, dilation)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.value = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, width, bias=False)

    def forward(self, z_BLD: Tensor, past_BHD: PastBHD | None) -> tuple[Tensor, PastBHD]:
        mixed_BLD, past_BHD = self.mixing(self.norm(z_BLD), past_BHD)
        return z_BLD + self.out(F.silu(self.gate(mixed_BLD)) * self.value(mixed_BLD)), past_BHD


class BoundedCorrection(nn.Module):
    """``gamma * tanh(P([Z, R]))``: what the core makes of a residual, each coordinate inside +-gamma.

    The residual enters through a map without bias, so that a residual of exactly zero and no residual at
    all give the same bits.
    """

    def __init__(self, width: int, hidden: int, gamma: float) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.from_state = nn.Linear(width, hidden)
        self.from_residual = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, width)
        self.gamma = nn.Parameter(torch.tensor(gamma))

    def forward(self, z_BLD: Tensor, residual_BLD: Tensor | None) -> Tensor:
        hidden_BLH = self.from_state(self.norm(z_BLD))
        if residual_BLD is not None:
            hidden_BLH = hidden_BLH + self.from_residual(residual_BLD)
        return self.gamma * torch.tanh(self.out(F.silu(hidden_BLH)))
