"""Parameters of the memory workers: how cells are adapted, stored and accepted."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tasks.codec import CellDtype
from tasks.parameters import Parameters

_LARGE_VOCABULARY = ("whole_vocabulary", "candidates", "hard_negatives", "examine_steps", "products")


class MemoryParams(Parameters):
    """Everything that decides the cells of a document and their acceptance, besides codec and text."""

    dtype: CellDtype = Field(
        default="int8",
        description="Stored cells: int8 or int4 with one float32 scale per cell, or bfloat16.",
    )
    rate: float = Field(default=0.05, gt=0, description="Adam step of the residual, in cell units.")
    max_steps: int = Field(
        default=256,
        ge=0,
        description="Most adaptation steps of a block; 1,024 in FEM-ASM, without early exit.",
    )
    patience: int = Field(
        default=32, ge=1, description="Steps without a better reading after which a block is given up."
    )
    margin: float = Field(
        default=1.0,
        ge=0,
        description="A block is done when each right token beats every other by this many nats as stored.",
    )
    whole_vocabulary: int = Field(
        default=8192,
        ge=0,
        description="Largest vocabulary whose full softmax scores every step; in a larger one candidates do, "
        "and whoever would leave is read with the full softmax first.",
    )
    candidates: int = Field(
        default=1024,
        ge=1,
        description="Candidates of a block: its own tokens, hard negatives, and random ones for the rest.",
    )
    hard_negatives: int = Field(
        default=8, ge=1, description="Best wrong tokens of each slot that become candidates."
    )
    examine_steps: int = Field(
        default=16,
        ge=1,
        description="Steps over candidates from one reading with the full softmax to the next.",
    )
    products: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="What steps over candidates multiply: bfloat16 where the processor has instructions for "
        "it, otherwise float32 all the same; the cells then depend on the kind of processor.",
    )
    token_recall: float = Field(
        default=0.70, ge=0, le=1, description="Least share of tokens read right for publication (FEM-ASM)."
    )
    loss: float = Field(
        default=2.60, ge=0, description="Greatest mean loss in nats per token for publication (FEM-ASM)."
    )
    tile_blocks: int = Field(
        default=32,
        ge=1,
        description="Blocks computed at once, always exactly so many, so that a document's bytes do not "
        "depend on its neighbours; a multiple of the codec's group.",
    )
    unit_documents: int = Field(
        default=64, ge=1, description="Documents of a unit of work: what a killed run loses at most."
    )

    @model_validator(mode="after")
    def _candidates_are_fewer(self) -> Self:
        if self.candidates > self.whole_vocabulary + 1:
            raise ValueError(
                f"candidates {self.candidates} may not exceed the vocabularies that need none; raise "
                f"whole_vocabulary, which is {self.whole_vocabulary}"
            )
        return self

    def identity(self) -> dict[str, Any]:
        """What enters the fingerprint of a memory: how documents are shared out to units changes none.

        What concerns large vocabularies alone is left out where it is the default, so that a memory keeps the
        fingerprint that it had before there were candidates.
        """
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        usual = {name for name in _LARGE_VOCABULARY if getattr(self, name) == defaults[name]}
        return self.model_dump(mode="json", exclude={"unit_documents", *usual})
