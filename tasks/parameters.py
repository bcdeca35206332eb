"""What the parameter classes of all rooms have in common."""

from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Parameters(BaseModel):
    """Frozen values: a name that is not known is refused, and so is infinity, no number, and an empty path.

    An infinite rate or norm would be computed with for hours, NaN passes comparisons that are meant to refuse
    it, and a path without a character would mean the working folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_path_is_empty(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields.get(info.field_name or "")
        if value == "" and field is not None and _holds_path(field.annotation):
            raise ValueError("it is empty; give a path, or . for the working folder")
        return value


def _holds_path(kind: Any) -> bool:
    return kind is Path or any(map(_holds_path, get_args(kind)))
