"""Parameters of rate-distortion: which cells are tried, and on how many documents."""

from pydantic import Field

from tasks.codec import CellDtype
from tasks.parameters import Parameters


class RateParams(Parameters):
    """The grid of cells; everything else about codecs and workers is in their own parameters."""

    name: str = Field(
        default="rate", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    widths: tuple[int, ...] = Field(
        default=(64, 128, 256, 768),
        min_length=1,
        description="Numbers in a cell; a codec is trained for each.",
    )
    dtypes: tuple[CellDtype, ...] = Field(
        default=("bfloat16", "int8", "int4"),
        min_length=1,
        description="Formats in which the cells of each codec are stored.",
    )
    worker_shards: int = Field(
        default=1, ge=1, description="Worker shards whose documents are remembered, the first ones."
    )
    least_recall: float = Field(
        default=0.95, ge=0, le=1, description="Token recall that the smallest sufficient cell has to reach."
    )
    int8_loss: float = Field(
        default=0.005, ge=0, description="Token recall that int8 may lose against bfloat16 as a default."
    )
