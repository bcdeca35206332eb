"""Parameters of the consolidation: what must not get worse, what alpha is scored on, how it is searched."""

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.evaluation import MOST_RESAMPLES
from tasks.parameters import Parameters
from tasks.shadows import HeldParams, TextSource, unwritten

SearchName = Literal["cma", "naive", "single", "line", "random", "quadratic"]
RETENTION = "retention"
"""What retention text is called beside domains."""
_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
BASELINES: tuple[SearchName, ...] = ("naive", "single", "line", "random", "quadratic")


class SealedParams(Parameters):
    """What is reported on sealed text, once."""

    chunk_tokens: int = Field(default=256, ge=8, le=8_192, description="Tokens of a sealed chunk.")
    baselines: tuple[SearchName, ...] = Field(
        default=(),
        description="Searches to stand beside CMA-ES at the same budget: single, line, random, quadratic.",
    )
    cards: int = Field(default=3, ge=0, le=100, description="Texts continued before and after.")
    card_tokens: int = Field(default=48, ge=1, le=1_024, description="Tokens of a continuation.")
    resamples: int = Field(
        default=2_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of sealed chunks."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of the intervals.")

    @field_validator("baselines")
    @classmethod
    def _each_search_once(cls, value: tuple[SearchName, ...]) -> tuple[SearchName, ...]:
        if len(set(value)) < len(value):
            raise ValueError("baselines name one twice; list each once")
        return value


class AnnealParams(Parameters):
    """How much of each layer's shadow is kept (ANNEAL): alpha in [0, 1.2], by forward passes only."""

    retention: tuple[TextSource, ...] = Field(
        default=(),
        max_length=32,
        description="Texts on which the host must not get worse: each gives an equal share of the probes.",
    )
    domains: dict[str, TextSource] = Field(
        default={},
        max_length=64,
        description="Domains by name that are learned one after another, for `cellar anneal cumulate`.",
    )
    held: HeldParams = Field(
        default=HeldParams(), description="Tokens of retention text for search, guard and report."
    )
    passages: int = Field(
        default=8, ge=1, le=4_096, description="Passages of the domain, and as many probes, for one score."
    )
    passage_tokens: int = Field(default=128, ge=8, le=8_192, description="Tokens of a passage.")
    scored: int = Field(
        default=64, ge=1, le=8_192, description="Tokens scored in a passage, the last ones (ours)."
    )
    evaluations: int = Field(
        default=200, ge=1, le=100_000, description="Alphas that a search evaluates, exactly."
    )
    population: int | None = Field(
        default=None,
        ge=4,
        le=1_000,
        description="Alphas of a generation, of which CMA-ES learns from half; otherwise what it advises.",
    )
    start: float = Field(default=0.8, ge=0, le=1.2, description="First mean of every alpha (ours).")
    spread: float = Field(default=0.3, gt=0, le=1.2, description="First standard deviation (ours).")
    penalty: float = Field(
        default=2.0,
        ge=0,
        le=1_000,
        description="Nats of gain that a nat of loss rise costs; rises are averaged over probes (ours).",
    )
    clamp: int | None = Field(
        default=None, ge=0, le=10_000, description="A layer whose alpha is 1 and is not searched."
    )
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Seed of every search.")
    sealed: SealedParams = SealedParams()

    @field_validator("domains")
    @classmethod
    def _domains_can_be_names(cls, value: dict[str, TextSource]) -> dict[str, TextSource]:
        for name in value:
            if re.fullmatch(_NAME, name) is None or name == RETENTION:
                raise ValueError(
                    f"{name[:80]!r} cannot name a domain; use up to 64 letters, digits, dots, dashes and "
                    f"underscores, and not {RETENTION}"
                )
            unwritten(name)
        return value

    @model_validator(mode="after")
    def _scored_is_inside(self) -> Self:
        if self.scored >= self.passage_tokens:
            raise ValueError(
                f"{self.scored} tokens cannot be scored in a passage of {self.passage_tokens}: the first has "
                "nothing before it"
            )
        return self

    def identity(self) -> dict[str, Any]:
        """What enters fingerprints: all but places of text and what is reported afterwards."""
        return self.model_dump(mode="json", exclude={"retention", "domains", "sealed"})
