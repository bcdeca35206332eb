"""Parameters of a replacement. The text fixes none of them: all defaults are ours."""

import re

from pydantic import Field, field_validator

from store.element import check_full_name
from store.errors import InvalidName
from store.format import is_digest
from tasks.parameters import Parameters

_WRITTEN = "write memory/NAME, or memory/NAME@VERSION with all 64 digits of the version"
_CUT_SHORT = re.compile(r"@[0-9a-f]*")
"""What looks like the beginning of a version: a recipe has to name a whole one."""


class ReplacementParams(Parameters):
    """Which element gets another version, and how that version is made."""

    name: str = Field(
        default="replacement", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=17, ge=0, description="Seed of the text that stands in the new version.")
    element: str | None = Field(
        default=None,
        description="The memory to replace, memory/NAME, or the version to put in, memory/NAME@VERSION; "
        "otherwise the one of most tasks.",
    )

    @field_validator("element")
    @classmethod
    def _is_memory(cls, element: str | None) -> str | None:
        if element is None:
            return None
        name, version = split_version(element)
        if not name.startswith("memory/"):
            raise ValueError(f"{name!r} is no memory, and nothing else can be replaced; {_WRITTEN}")
        if version is None and "@" in name and _CUT_SHORT.fullmatch(name[name.rindex("@") :]):
            raise ValueError(f"{name!r} does not end in a whole version; {_WRITTEN}")
        try:
            check_full_name(name)
        except InvalidName as error:
            raise ValueError(f"{str(error).removesuffix('; rename it')}; {_WRITTEN}") from error
        return element


def split_version(element: str) -> tuple[str, str | None]:
    """A memory's name, and the version where one is given; the name itself may hold an `@`."""
    name, at, version = element.rpartition("@")
    return (name, version) if at and is_digest(version) else (element, None)
