"""Parameters of the codec: its architecture and its training."""

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.parameters import Parameters

CellDtype = Literal["bfloat16", "int8", "int4"]
"""Number formats of stored cells."""
LONGEST_SPAN = 4096
"""Cells of a parent: a document is read in groups of as many."""

USUAL_VOCABULARY = 4096
"""Tokens for which the defaults were chosen."""


class CodecArchitecture(Parameters):
    """What fixes the shapes of a codec and the meaning of its cells."""

    block_tokens: int = Field(
        default=64, ge=2, le=65_536, description="T, tokens in a completed block, slots in a cell."
    )
    cell_width: int = Field(
        default=768, ge=2, description="C, numbers in a cell; a multiple of block_tokens."
    )
    slot_width: int = Field(
        default=128, ge=16, description="S, width of a slot state and of the vocabulary head."
    )
    encoder_layers: int = Field(
        default=1, ge=0, description="Mixing layers between the token codes and the cell."
    )
    decoder_layers: int = Field(
        default=1, ge=0, description="Mixing layers between the cell and the slot states."
    )
    mixing_width: int = Field(default=64, ge=1, description="Hidden width of the mixing across slots.")
    channel_width: int = Field(default=256, ge=1, description="Hidden width of the mixing inside a slot.")
    parent_spans: tuple[int, ...] = Field(
        default=(),
        description="Spans of consecutive cells whose means the decoder also reads; (4, 16) in FEM-ASM.",
    )
    code_seed: int = Field(
        default=16, ge=0, description="Seed of the frozen lift of the Binary16 token codes."
    )

    @model_validator(mode="after")
    def _shapes_agree(self) -> Self:
        if self.cell_width % self.block_tokens:
            raise ValueError(
                f"cell_width {self.cell_width} is not a multiple of block_tokens {self.block_tokens}; "
                "every slot needs the same share of the cell"
            )
        spans = self.parent_spans
        outside = any(not 2 <= span <= LONGEST_SPAN for span in spans)
        if outside or any(b <= a or b % a for a, b in pairwise(spans)):
            raise ValueError(
                f"parent_spans {spans} must be from 2 to {LONGEST_SPAN}, rise, and each divide the next, as "
                "in (4, 16)"
            )
        return self

    @property
    def slot_cell_width(self) -> int:
        """Numbers of the cell that belong to one slot, C / T."""
        return self.cell_width // self.block_tokens

    @property
    def group_blocks(self) -> int:
        """Consecutive blocks of a document whose readouts depend on each other (1 without parents)."""
        return self.parent_spans[-1] if self.parent_spans else 1


class CodecParams(Parameters):
    """Everything that decides the bytes of a trained codec, besides its documents and tokenizer."""

    name: str = Field(
        default="docs", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names the element codec/<name>."
    )
    architecture: CodecArchitecture = CodecArchitecture()
    seed: int = Field(
        default=2, ge=0, description="Seed of the initial weights, of the data order and of candidates."
    )
    steps: int = Field(default=300, ge=1, description="Shared updates.")
    batch_blocks: int = Field(default=32, ge=1, description="Blocks in a batch.")
    local_steps: int = Field(
        default=1,
        ge=0,
        description="K, adaptation steps on a batch's cells before each shared update. FEM-ASM uses 32; a "
        "step costs about half a shared update, and on documentation with 4,096 tokens K of 0, 1 and 2 read "
        "unseen blocks equally well, so the default keeps the alternation at its least cost.",
    )
    local_rate: float = Field(
        default=0.01, gt=0, description="Adam step of the local adaptation, in cell units."
    )
    rate: float = Field(default=3e-3, gt=0, description="Peak AdamW rate of the shared parameters.")
    rate_floor: float = Field(default=1e-4, ge=0, description="Rate at the end of the cosine.")
    warmup_steps: int = Field(default=50, ge=0, description="Shared updates of linear warm-up.")
    weight_decay: float = Field(default=0.01, ge=0, description="AdamW decay of matrices.")
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the shared gradient.")
    candidates: int = Field(
        default=512,
        ge=0,
        description="Random negatives of the candidate softmax; 0 trains on the full vocabulary.",
    )
    random_tokens: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share of a batch's tokens replaced by ids drawn from the whole vocabulary, so that the "
        "codec also reads tokens that its documents lack.",
    )
    most_random_tokens: float = Field(
        default=0.4,
        ge=0,
        lt=1,
        exclude_if=lambda value: value == 0.4,
        description="Beyond 4,096 tokens that share grows with the vocabulary, so that each of its tokens is "
        "drawn as often, up to this one (ours). Left out of fingerprints where it is the default.",
    )
    stored_dtype: CellDtype = Field(
        default="bfloat16",
        description="Rounding the shared update sees, so that the codec reads stored cells well.",
    )
    validation_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share of the training documents kept for the codec's own figures.",
    )
    validation_steps: int = Field(
        default=8, ge=0, description="Adaptation steps on validation cells (128 in FEM-ASM)."
    )

    def random_share(self, vocab_size: int) -> float:
        """Share of a batch's tokens that are replaced by random ones of a vocabulary."""
        grown = self.random_tokens * vocab_size / USUAL_VOCABULARY
        return max(self.random_tokens, min(grown, self.most_random_tokens))
