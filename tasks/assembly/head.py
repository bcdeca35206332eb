"""The core's vocabulary head: a language part, and a copying part where an element supports the node (ours).

Both parts read the same node state, each from its own directions. The copying part keeps the codec's
vocabulary table over slot states and every token's Binary16 code as frozen columns, so evidence is copied
as soon as an adapter writes it into those directions; V classes need not be learned one by one, and the
language loss cannot wear them away. The two distributions are mixed by a trust::

    p_i = (1 - g_i) language_i + g_i copying_i
    log-odds of g_i = trust(Z_i) + log W_i + kappa * record_i

``record_i`` is how well the evidence has done so far: over the supported nodes ``j < i``, the mean of
``log copying_j(x_(j+1)) - log language_j(x_(j+1))`` at the tokens that really followed, each bounded, the
posterior log-odds of two experts up to its scale. Wrong evidence costs what trust it still has; a node
without weight reads the language part alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.assembly.params import CoreArchitecture
from tasks.codec import CODE_BITS


def copied_columns(width: int, source: int) -> int:
    """Directions that memory states of width `source` (0 where a core reads none) and token codes take in a
    state space of `width`.
    """
    return min(source, width - 2 * CODE_BITS) + CODE_BITS


@dataclass(frozen=True)
class Record:
    """How the evidence of each row has done, to carry from one window of nodes to the next.

    ``gain_B`` float32, sum of bounded log-likelihood gains; ``count_B`` float32, supported nodes behind it;
    ``language_BV`` and ``copying_BV`` float32, both experts' log-probabilities at the last node, whose next
    token is still to come; ``supported_B`` bool, whether that node was supported.
    """

    gain_B: Tensor
    count_B: Tensor
    language_BV: Tensor
    copying_BV: Tensor
    supported_B: Tensor


class MixtureHead(nn.Module):
    """Node states, total weights and tokens of a window -> log-probabilities of the next tokens."""

    basis_DD: Tensor
    copied_VC: Tensor

    def __init__(self, architecture: CoreArchitecture, vocab_size: int, copied: int) -> None:
        """The first `width - copied` directions of `basis_DD` are language, the last `copied` copying."""
        super().__init__()
        width = architecture.width
        self.gain_bound = architecture.gain_bound
        self.prior_count = architecture.prior_count
        self.parts = [width - copied, copied]
        self.language_norm = nn.RMSNorm(width - copied)
        self.copying_norm = nn.RMSNorm(copied)
        self.trust_norm = nn.RMSNorm(width)
        self.language = nn.Linear(width - copied, vocab_size)
        self.trust = nn.Linear(width, 1)
        self.kappa = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("basis_DD", torch.eye(width))
        self.register_buffer("copied_VC", torch.zeros(vocab_size, copied))

    def forward(
        self, z_BLD: Tensor, weight_BL: Tensor | None, tokens_BL: Tensor, record: Record | None = None
    ) -> tuple[Tensor, Record | None]:
        """Log-probabilities (B, L, V) float32, and the record for the window that follows.

        `weight_BL` is None for a window without any element. The record is None until a row has had one.
        """
        language_BLF, copying_BLC = torch.split(z_BLD @ self.basis_DD, self.parts, -1)
        language_BLV = self.language(self.language_norm(language_BLF.float())).float().log_softmax(-1)
        if weight_BL is None and record is None:
            return language_BLV, None
        if weight_BL is None:
            weight_BL = z_BLD.new_zeros(z_BLD.shape[:2])
        supported_BL = weight_BL > 0
        logits_NV = F.linear(self.copying_norm(copying_BLC[supported_BL].float()), self.copied_VC)
        copying_NV = logits_NV.float().log_softmax(-1)
        copying_BLV = language_BLV.masked_scatter(supported_BL[..., None], copying_NV)
        gain_BL, count_BL, following = self._record(
            language_BLV, copying_BLV, supported_BL, tokens_BL, record
        )
        standing_N = (gain_BL / (count_BL + self.prior_count))[supported_BL]
        trust_N = self.trust(self.trust_norm(z_BLD[supported_BL])).float().squeeze(-1)
        odds_N1 = (trust_N + weight_BL[supported_BL].log() + self.kappa * standing_N)[:, None]
        mixed_NV = torch.logaddexp(
            language_BLV[supported_BL] + F.logsigmoid(-odds_N1), copying_NV + F.logsigmoid(odds_N1)
        )
        return language_BLV.masked_scatter(supported_BL[..., None], mixed_NV), following

    @torch.no_grad()
    def _record(
        self,
        language_BLV: Tensor,
        copying_BLV: Tensor,
        supported_BL: Tensor,
        tokens_BL: Tensor,
        record: Record | None,
    ) -> tuple[Tensor, Tensor, Record]:
        """Gains and counts (B, L) of the nodes before each node, and the record after the window."""
        next_BL1 = tokens_BL[:, 1:, None]
        gain_BL = copying_BLV[:, :-1].gather(-1, next_BL1) - language_BLV[:, :-1].gather(-1, next_BL1)
        gain_BL = F.pad(gain_BL.squeeze(-1), (1, 0))
        seen_BL = F.pad(supported_BL[:, :-1].float(), (1, 0))
        if record is not None:
            first_B1 = tokens_BL[:, :1]
            gain_BL[:, :1] = record.copying_BV.gather(-1, first_B1) - record.language_BV.gather(-1, first_B1)
            seen_BL[:, 0] = record.supported_B.float()
        gain_BL = (gain_BL.clamp(-self.gain_bound, self.gain_bound) * seen_BL).cumsum(1)
        count_BL = seen_BL.cumsum(1)
        if record is not None:
            gain_BL, count_BL = gain_BL + record.gain_B[:, None], count_BL + record.count_B[:, None]
        last = (gain_BL[:, -1], count_BL[:, -1], language_BLV[:, -1], copying_BLV[:, -1], supported_BL[:, -1])
        return gain_BL, count_BL, Record(*(part.detach() for part in last))


@torch.no_grad()
def start_copying(
    head: MixtureHead,
    architecture: CoreArchitecture,
    *,
    coded: Sequence[nn.Linear],
    codes_VK: Tensor,
    lift_KD: Tensor,
    generator: torch.Generator,
    memory: tuple[nn.Linear, Tensor] | None = None,
) -> None:
    """Set a head and its adapters so that attached evidence is copied before any training.

    The state space is divided into orthogonal parts: language, which holds the lifted input codes; memory
    evidence; and evidence that names its token by code. A codec head wider than its part is represented by
    its strongest singular directions.

    Args:
        coded: adapters of the kinds whose source states are token codes.
        codes_VK: float32 in {-1, +1}, the code of every token.
        lift_KD: float32, the lift of the core's input codes.
        memory: the adapter of slot states, and the weight (V, S) float32 of the codec's vocabulary head over
            them; None for a core that reads no memories.
    """
    width = head.basis_DD.shape[0]
    copied = head.copied_VC.shape[1]
    draw_DD = torch.randn(width, width, generator=generator)
    draw_DD[:, :CODE_BITS] = lift_KD.T
    head.basis_DD.copy_(torch.linalg.qr(draw_DD).Q)
    _, memory_DM, code_DK = torch.split(head.basis_DD, [width - copied, copied - CODE_BITS, CODE_BITS], 1)
    # The copying part is read at unit mean square, which the tables undo.
    code_scale, read_scale = (CODE_BITS / width) ** 0.5, (width / copied) ** 0.5
    tables = [codes_VK * (architecture.code_margin / 2 * code_scale * read_scale)]
    if memory is not None:
        adapter, codec_head_VS = memory
        source = codec_head_VS.shape[1]
        directions_SM = torch.eye(source)
        if source > memory_DM.shape[1]:
            directions_SM = torch.linalg.svd(codec_head_VS, full_matrices=False).Vh[: memory_DM.shape[1]].T
        # Slot states leave a layer norm, so their norm is close to sqrt(source); codes have norm
        # sqrt(CODE_BITS) exactly.
        memory_scale = (source / width) ** 0.5
        adapter.weight.copy_(memory_DM @ directions_SM.T * (architecture.proposal_rms / memory_scale))
        tables.insert(0, codec_head_VS @ directions_SM * (memory_scale * read_scale))
    for adapter in coded:
        adapter.weight.copy_(code_DK * (architecture.proposal_rms / code_scale))
    head.copied_VC.copy_(torch.cat(tables, 1))
    head.language.weight.normal_(0, 0.02, generator=generator)
    head.trust.weight.zero_()
    head.trust.bias.fill_(architecture.initial_trust)


@torch.no_grad()
def start_from_frequencies(head: MixtureHead, counts_V: Tensor) -> None:
    """Begin the language part at the add-one unigram distribution of `counts_V` (int64)."""
    frequency_V = (counts_V + 1).to(torch.float64)
    head.language.bias.copy_((frequency_V / frequency_V.sum()).log())
