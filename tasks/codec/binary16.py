"""Binary16: a fixed 16-bit identity for every token and its parameter-free lift (FEM-ASM, token identity)."""

import torch
from torch import Tensor, nn

from tasks.errors import VocabularyTooLarge

CODE_BITS = 16
MAX_VOCABULARY = 1 << CODE_BITS


def check_vocabulary(vocab_size: int) -> None:
    """Raise `VocabularyTooLarge` when 16 bits cannot tell `vocab_size` tokens apart."""
    if vocab_size > MAX_VOCABULARY:
        raise VocabularyTooLarge(
            f"the vocabulary has {vocab_size} tokens, but Binary16 tells at most {MAX_VOCABULARY} apart; "
            "use a tokenizer with a smaller vocabulary"
        )


def orthogonal_lift(width: int, seed: int) -> Tensor:
    """A (16, width) float32 map with orthogonal rows, scaled so that lifted codes have unit mean square.

    Drawn from its own seed and orthogonalised in float64, so it can be recomputed instead of stored. On the
    meta device, where a model is an outline without numbers, only its shape.
    """
    if width < CODE_BITS:
        raise ValueError(
            f"a lift of {CODE_BITS} orthogonal rows needs a width of {CODE_BITS} or more, got {width}"
        )
    if _in_outline():
        return torch.empty(CODE_BITS, width)
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(width, CODE_BITS, generator=generator, dtype=torch.float64)
    basis, upper = torch.linalg.qr(draw)
    # The sign of each column is LAPACK's choice: pin it.
    basis = basis * torch.sign(torch.diagonal(upper))
    lift_KS: Tensor = basis.T * (width / CODE_BITS) ** 0.5
    return lift_KS.to(torch.float32).contiguous()


def _in_outline() -> bool:
    """Whether tensors are made without numbers, as `tasks.payload.load_module` does first."""
    return torch.get_default_device().type == "meta"


class Binary16(nn.Module):
    """Frozen input codes: token id -> 16 bits in {-1, +1} -> `width` numbers, without a trainable table.

    Its buffers are recomputed from `seed` and are therefore not part of a state dict.
    """

    lift_KS: Tensor
    shift_K: Tensor

    def __init__(self, vocab_size: int, width: int, seed: int) -> None:
        super().__init__()
        check_vocabulary(vocab_size)
        self.vocab_size = vocab_size
        self.width = width
        self.register_buffer("lift_KS", orthogonal_lift(width, seed), persistent=False)
        # An arange without numbers makes torch load its symbolic shapes, which takes most of a second.
        shift_K = torch.empty(CODE_BITS, dtype=torch.int64) if _in_outline() else torch.arange(CODE_BITS)
        self.register_buffer("shift_K", shift_K, persistent=False)

    def code(self, tokens: Tensor) -> Tensor:
        """The bits of integer ids of any shape (...,), lowest bit first, as float32 (..., 16) in {-1, +1}."""
        bits: Tensor = (tokens.unsqueeze(-1) >> self.shift_K) & 1
        return bits.to(torch.float32) * 2 - 1

    def forward(self, tokens: Tensor) -> Tensor:
        """Lifted codes of integer ids (...,) as float32 (..., width)."""
        return self.code(tokens) @ self.lift_KS

    def codebook(self) -> Tensor:
        """The lifted code of every token, float32 (vocab_size, width), computed on demand."""
        if self.lift_KS.is_meta:
            return torch.empty(self.vocab_size, self.width, device="meta")
        lifted: Tensor = self(torch.arange(self.vocab_size, device=self.lift_KS.device))
        return lifted
