"""Parameters of the memory workers: how cells are adapted, stored and accepted."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tasks.codec import CellDtype


class MemoryParams(BaseModel):
    """Everything that decides the cells of a document and their acceptance, besides codec and text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: CellDtype = Field(
        default="bfloat16", description="Stored cells: bfloat16, or int8 with one float32 scale per cell."
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

    def identity(self) -> dict[str, Any]:
        """What enters the fingerprint of a memory: how documents are shared out to units changes none."""
        return self.model_dump(mode="json", exclude={"unit_documents"})
