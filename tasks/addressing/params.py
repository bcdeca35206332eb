"""Parameters of the evaluations of addressing. The text fixes none of them: all defaults are ours."""

from typing import Self

from pydantic import Field, model_validator

from tasks.evaluation import MOST_RESAMPLES, MOST_TASKS
from tasks.parameters import Parameters


class AddressingParams(Parameters):
    """Which cues are asked for, how they are changed, and what the baselines are."""

    name: str = Field(
        default="addressing", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=13, ge=0, description="Seed of tasks, changed tokens and resamples.")
    tasks: int = Field(default=500, ge=1, le=MOST_TASKS, description="Most tasks of each kind.")
    cue_tokens: int = Field(default=32, ge=2, le=64, description="Known tokens of a cue.")
    answer_tokens: int = Field(
        default=8, ge=1, le=64, description="Tokens of a continuation and of a masked span."
    )
    value_tokens: int = Field(default=4, ge=1, le=64, description="Most tokens of a value to restore.")
    rare_elements: int = Field(
        default=2,
        ge=0,
        description="A token is a value if it is a number or occurs in at most so many elements.",
    )
    corruption: tuple[float, ...] = Field(
        default=(0.0, 0.1, 0.2, 0.3), description="Shares of a cue's known tokens that are changed."
    )
    candidates: int = Field(default=64, ge=1, description="Candidates that count for candidate recall.")
    bm25_k1: float = Field(default=1.5, ge=0, description="How soon repetitions of a token stop counting.")
    bm25_b: float = Field(default=0.75, ge=0, le=1, description="How much BM25 damps long elements.")
    timed_queries: int = Field(
        default=200, ge=1, le=MOST_TASKS, description="Most cues behind the rates of a searcher."
    )
    resamples: int = Field(
        default=10_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of documents."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Coverage of the intervals.")

    @model_validator(mode="after")
    def _shares_rise(self) -> Self:
        shares = self.corruption
        if not shares or any(not 0 <= share < 1 for share in shares) or list(shares) != sorted(set(shares)):
            raise ValueError("corruption has to list rising shares from 0 to below 1, e.g. [0, 0.1]")
        return self


class QuestionParams(Parameters):
    """How the signals are weighed and intervals drawn; the text fixes none of it (ours)."""

    name: str = Field(
        default="questions", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=14, ge=0, description="Seed of scrambled sentences and resamples.")
    scrambled: int = Field(
        default=400, ge=1, le=MOST_TASKS, description="Most sentences that the signals are weighed on."
    )
    resamples: int = Field(
        default=10_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of articles."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Coverage of the intervals.")
