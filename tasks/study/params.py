"""Parameters of episodic program selection: objectives, inner and outer learning, and the judgement."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.evaluation import MOST_RESAMPLES
from tasks.parameters import Parameters
from tasks.programs import Family, Split

Objective = Literal["static", "adapted"]
"""Where the outer loss reads the query: at the slow state, or at the state that the feedback made of it."""


class OuterParams(Parameters):
    """The outer training of slow states: AdamW on the query loss of a few episodes (LARC 2.2)."""

    updates: int = Field(default=256, ge=0, le=100_000, description="Outer updates; 0 is an untrained start.")
    episodes: int = Field(
        default=2,
        ge=2,
        le=256,
        multiple_of=2,
        description="Episodes of an update, half of each family (ours).",
    )
    rate: float = Field(default=1e-3, gt=0, le=1, description="Learning rate of AdamW.")
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="Its decays of both moments.")
    eps: float = Field(default=1e-8, gt=0, le=1, description="What it adds to the root of the second one.")
    weight_decay: float = Field(default=0.0, ge=0, le=1, description="Its weight decay.")
    clip: float = Field(default=1.0, gt=0, le=1e6, description="Largest norm of an update's gradient.")
    curve_every: int = Field(
        default=64, ge=1, le=100_000, description="Updates between two points of the learning curve (ours)."
    )
    curve_split: Split = Field(
        default=Split.PREFLIGHT,
        description="Groups that the learning curve is read on (ours): those of development stay unseen.",
    )
    log_every: int = Field(
        default=8, ge=1, le=100_000, description="Updates whose norms and losses are averaged into one row."
    )

    @model_validator(mode="after")
    def _usable_betas(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {self.betas}; give two numbers from 0 to below 1")
        return self


class JudgeParams(Parameters):
    """Intervals and the rules by which an effect counts and an objective is chosen (LARC 2.2)."""

    seed: int = Field(default=2026092820, ge=0, description="Seed of shams and resamples (ours).")
    resamples: int = Field(default=10_000, ge=100, le=MOST_RESAMPLES, description="Resamples of groups.")
    confidence: float = Field(default=0.99, gt=0.5, lt=1, description="Of the intervals.")
    material: float = Field(default=0.03, ge=0, le=1, description="Least effect that counts, as error.")
    tie: float = Field(default=1e-6, ge=0, le=1, description="Objectives this near are told apart by cost.")


class StudyParams(Parameters):
    """Everything about the study besides the programs, the host and the correction itself."""

    name: str = Field(
        default="selection",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names residual/<name>/<objective>-<seed> and evaluation/<name>.",
    )
    objectives: tuple[Objective, ...] = Field(
        default=("static", "adapted"),
        min_length=1,
        description="What slow states are trained for: the query's loss as they are, or after feedback.",
    )
    seeds: tuple[int, ...] = Field(
        default=(2026092811, 2026092812, 2026092813),
        min_length=1,
        description="Of the paired initialisations and their episodes.",
    )
    module: str = Field(
        default="",
        pattern=r"^[a-z0-9_]*(\.[a-z0-9_]+)*$",
        max_length=100,
        description="A linear module of layer larc.insertion whose weight is corrected instead, e.g. "
        "self_attn.q_proj: LoRA of as many values, as a baseline; empty for LARC.",
    )
    inner_steps: int = Field(default=2, ge=1, le=64, description="Updates of an episode from its feedback.")
    outer: OuterParams = OuterParams()
    judge: JudgeParams = JudgeParams()
    prompt_tokens: int = Field(default=384, ge=16, le=8192, description="Longest prompt.")
    answer_tokens: int = Field(
        default=32, ge=4, le=1024, description="Longest candidate, its end of sequence included."
    )

    @model_validator(mode="after")
    def _listed_once(self) -> Self:
        for name in ("objectives", "seeds"):
            if len(set(values := getattr(self, name))) < len(values):
                raise ValueError(f"{name} name one twice; list each once")
        if any(not 0 <= seed < 2**63 for seed in self.seeds):
            raise ValueError("a seed is negative or has more than 63 bits; choose others")
        return self


FAMILIES = tuple(Family)
"""Families in the order in which an update's episodes take turns."""
