"""Parameters of shadows beside retrieval: which strings are asked for, and how much text is shown."""

from typing import Any

from pydantic import Field

from tasks.evaluation import MOST_RESAMPLES
from tasks.parameters import Parameters


class CompositionParams(Parameters):
    """Strings of a snapshot's documents, continued by a host with shadows, with retrieved text, or both."""

    name: str = Field(
        default="composition",
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$",
        description="Names the element evaluation/<name>.",
    )
    passages: int = Field(default=64, ge=2, le=10_000, description="Strings that are asked for.")
    cue_tokens: int = Field(
        default=24,
        ge=4,
        le=1_024,
        description="Tokens of the host before a string: the index is asked with them.",
    )
    target_tokens: int = Field(default=24, ge=1, le=1_024, description="Tokens of the host of a string.")
    context_tokens: int = Field(
        default=64,
        ge=0,
        le=4_096,
        description="Tokens of the memory that are shown on both sides of what the cue matches (ours).",
    )
    resamples: int = Field(
        default=2_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of documents."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of the intervals.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Draws documents and places.")

    def identity(self) -> dict[str, Any]:
        """What enters fingerprints: all but the name, under which an evaluation is looked for besides."""
        return self.model_dump(mode="json", exclude={"name"})
