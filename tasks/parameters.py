"""What the parameter classes of all rooms have in common."""

from pydantic import BaseModel, ConfigDict


class Parameters(BaseModel):
    """Frozen values: a name that is not known is refused, and so is infinity and what is no number.

    An infinite rate or norm would be computed with for hours, and NaN passes comparisons that are meant to
    refuse it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
