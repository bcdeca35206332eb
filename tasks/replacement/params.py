"""Parameters of a replacement. The text fixes none of them: all defaults are ours."""

from pydantic import BaseModel, ConfigDict, Field


class ReplacementParams(BaseModel):
    """Which element gets another version, and how that version is made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        default="replacement", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=17, ge=0, description="Seed of the text that stands in the new version.")
    element: str | None = Field(
        default=None,
        description="The memory to replace, memory/NAME, or the version to put in, memory/NAME@VERSION; "
        "otherwise the one of most tasks.",
    )
