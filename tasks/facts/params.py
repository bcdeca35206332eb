"""Parameters of learned facts: how many are made up, how they are taught, and what they are asked beside."""

from typing import Any, Literal

from pydantic import Field, field_validator

from tasks.evaluation import MOST_RESAMPLES
from tasks.parameters import Parameters

Lesson = Literal["varied", "repeated", "once"]
"""varied: a dozen framings of every fact; repeated: one framing again and again, in as many tokens; once: one
framing, one time."""


class FactsParams(Parameters):
    """Made-up facts, what the host is taught of them, and how it is asked (ANNEAL, fact learning)."""

    name: str = Field(
        default="facts",
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$",
        description="Names the elements: shadow/<name>.<lesson>.written and evaluation/<name>.facts.",
    )
    lessons: tuple[Lesson, ...] = Field(
        default=("varied", "repeated"),
        min_length=1,
        max_length=3,
        description="What is taught, each to the untouched host; once is one sentence a fact.",
    )
    relations: int = Field(default=6, ge=1, le=8, description="Different attributes that facts are about.")
    facts_each: int = Field(default=5, ge=2, le=200, description="Facts of each attribute, and so entities.")
    untaught: int = Field(
        default=4, ge=1, le=50, description="Wrong answers of the same type that no lesson ever mentions."
    )
    passes: int = Field(
        default=3,
        ge=1,
        le=1_000,
        description="Times that a varied lesson says every fact in every framing; it fixes the tokens of the "
        "repeated one too (ours).",
    )
    said_tokens: int = Field(
        default=8, ge=1, le=256, description="Tokens that are generated where a fact is asked for."
    )
    resamples: int = Field(
        default=2_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of facts."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of the intervals.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Makes up the facts and orders the lessons.")

    @field_validator("lessons")
    @classmethod
    def _each_lesson_once(cls, value: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
        if len(set(value)) < len(value):
            raise ValueError("lessons name one twice; list each once")
        return value

    def identity(self) -> dict[str, Any]:
        """What enters fingerprints: all but the name."""
        return self.model_dump(mode="json", exclude={"name"})
