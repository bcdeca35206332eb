"""Parameters of the public programs: ranges of both families, splits of groups, inputs of an episode."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from tasks.parameters import Parameters


class Split(StrEnum):
    """Splits that can be opened; the reserved groups are in none of them."""

    TRAIN = "train"
    DEVELOPMENT = "development"
    PREFLIGHT = "preflight"


class ArithmeticParams(Parameters):
    """Whole numbers, scaled, shifted and clipped (LARC, episodic program selection)."""

    scale: int = Field(default=7, ge=2, le=100, description="Scales go from minus to plus this, without 0.")
    offset: int = Field(default=12, ge=1, le=1000, description="Offsets go from minus to plus this.")
    clip: int = Field(default=16, ge=1, le=1000, description="Clipping is to minus and plus this.")
    magnitude: int = Field(default=48, ge=2, le=10_000, description="Inputs go from minus to plus this.")


class ListParams(Parameters):
    """Lists of whole numbers, filtered, cut, sorted and extended (LARC, episodic program selection)."""

    minimum: int = Field(default=6, ge=0, le=100, description="Minima go from minus to plus this.")
    entries: int = Field(
        default=6, ge=2, le=32, description="Entries of an input; limits go from 1 to as many."
    )
    magnitude: int = Field(default=12, ge=1, le=1000, description="Entries go from minus to plus this.")
    suffix: int = Field(default=2, ge=1, le=8, description="Entries that `append` adds (ours).")


class ProgramsParams(Parameters):
    """Which programs there are to choose from, and on which inputs they are run."""

    seed: int = Field(
        default=2026092800,
        ge=0,
        description="Seed of splits, suffixes and inputs (ours).",
    )
    arithmetic: ArithmeticParams = ArithmeticParams()
    lists: ListParams = ListParams()
    distinct: bool = Field(
        default=True,
        description="Leave out groups in which two of the four programs compute the same (ours).",
    )
    train: int = Field(default=16, ge=1, le=1000, description="Training groups of each family.")
    development: int = Field(default=8, ge=2, le=1000, description="Development groups of each family.")
    reserved: int = Field(default=8, ge=0, le=1000, description="Groups of each family that nothing opens.")
    preflight: int = Field(
        default=2, ge=1, le=1000, description="Groups of each family to look at while a training runs."
    )
    support: int = Field(default=4, ge=1, le=64, description="Inputs that give the feedback.")
    query: int = Field(default=20, ge=1, le=256, description="New inputs that score the choice.")

    @model_validator(mode="after")
    def _enough_inputs(self) -> Self:
        needed = self.support + self.query
        if needed > (numbers := 2 * self.arithmetic.magnitude + 1):
            raise ValueError(f"{needed} different inputs are asked for and arithmetic has {numbers}")
        if 2 * needed > (2 * self.lists.magnitude + 1) ** self.lists.entries:
            raise ValueError(f"{needed} different inputs are asked for and there are too few lists")
        return self

    @property
    def groups(self) -> int:
        """Groups of each family over all splits."""
        return self.train + self.development + self.reserved + self.preflight
