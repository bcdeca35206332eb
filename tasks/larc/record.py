"""Reading the record in a payload's header: bounded, strict, and refused in one sentence."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.errors import BadPayload

R = TypeVar("R", bound=BaseModel)


def read_record(model: type[R], said: Any, *, what: str, remedy: str) -> R:
    """What a header says, as `model`; raises `BadPayload` that names the first thing that does not fit."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadPayload(
            f"the record of the {what} does not fit: {place}: {first['msg']}; {remedy}"
        ) from error
