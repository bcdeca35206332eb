"""Parameters of the skills: programs, phrases and ranges, controller, core, and their evaluation."""

from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from tasks.assembly import CoreArchitecture
from tasks.evaluation import MOST_RESAMPLES, MOST_TASKS
from tasks.parameters import Parameters
from tasks.skills.program import Division

LARGEST_MAGNITUDE = 3_037_000_499
"""Products of two such numbers stay inside signed 64-bit integers."""


_LEAST_SPAN = 100
"""Magnitudes of the training range: of ten thousand pairs the tenth that is held out cannot be empty."""


class Magnitudes(Parameters):
    """Operands from `low` to `high` in magnitude, of either sign; every number of digits equally often."""

    low: int = Field(ge=0, le=LARGEST_MAGNITUDE)
    high: int = Field(ge=1, le=LARGEST_MAGNITUDE)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"magnitudes go from {self.low} to {self.high}; the first must be smaller")
        return self


class PhraseParams(Parameters):
    """Which prompts are made; the ranges of the three splits share no magnitude (ours)."""

    seed: int = Field(default=5, ge=0, description="Seed of all prompts.")
    train: Magnitudes = Magnitudes(low=0, high=999)
    validation: Magnitudes = Magnitudes(low=1_000, high=9_999)
    disjoint: Magnitudes = Magnitudes(low=10_000, high=1_000_000_000)
    negative: float = Field(default=0.4, ge=0, le=1, description="Share of negative operands.")
    in_words: float = Field(default=0.3, ge=0, le=1, description="Share of operands written as words.")

    @model_validator(mode="after")
    def _ranges_are_disjoint(self) -> Self:
        ranges = sorted((self.train, self.validation, self.disjoint), key=lambda range_: range_.low)
        if any(before.high >= after.low for before, after in pairwise(ranges)):
            raise ValueError(
                "the ranges train, validation and disjoint overlap; give each its own magnitudes"
            )
        if (span := self.train.high - self.train.low + 1) < _LEAST_SPAN:
            raise ValueError(
                f"the train range has {span} magnitudes, too few to hold out pairs of operands; give it "
                f"{_LEAST_SPAN} at least"
            )
        return self


class TokenParams(Parameters):
    """The vocabulary of prompts and answers, and the slots that an answer can have."""

    vocab_size: int = Field(default=512, ge=300, le=65_536, description="Tokens learned on training prompts.")
    prompts: int = Field(default=6_000, ge=100, description="Training prompts to learn them on.")
    slots: int = Field(default=24, ge=21, le=64, description="Output slots; 64 bits need 20 characters.")
    characters: int = Field(default=8, ge=1, le=32, description="Characters of a token that are observed.")


class ControllerParams(Parameters):
    """The network that chooses the operation (ours)."""

    seed: int = Field(default=7, ge=0)
    width: int = Field(default=96, ge=16, le=1024, description="Width of lifted token codes and features.")
    kernel: int = Field(default=1, ge=1, le=31, description="Tokens that a feature looks at.")
    steps: int = Field(default=700, ge=1)
    rows: int = Field(default=96, ge=1, description="Prompts of an update.")
    rate: float = Field(default=3e-3, gt=0)
    noise: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="Chance of a random word at each gap of a training prompt: unknown ones count little.",
    )


class InterfaceMix(Parameters):
    """How often a training row shows the result by each interface; shares are normalised."""

    none: float = Field(default=0.2, ge=0, description="No element: the core alone.")
    positional: float = Field(default=0.25, ge=0, description="Token observations, one for each slot.")
    combined: float = Field(default=0.2, ge=0, description="Token and character observations.")
    whole: float = Field(default=0.35, ge=0, description="The global vector, at every slot.")

    @model_validator(mode="after")
    def _something_is_shown(self) -> Self:
        if sum(self.shares()) <= 0:
            raise ValueError("the mix of interfaces is empty; give at least one a positive share")
        return self

    def shares(self) -> tuple[float, ...]:
        """The shares in the order of the fields."""
        return tuple(getattr(self, name) for name in type(self).model_fields)


class SkillCoreParams(Parameters):
    """The residual-assembly core that reads prompts and writes results."""

    architecture: CoreArchitecture = CoreArchitecture(
        width=160, iterations=3, hidden=224, correction_hidden=160, kernel=4, dilations=(1, 4)
    )
    seed: int = Field(default=9, ge=0)
    steps: int = Field(default=600, ge=1)
    rows: int = Field(default=48, ge=1, description="Sequences of an update.")
    rate: float = Field(default=4e-3, gt=0)
    rate_floor: float = Field(default=1e-4, ge=0)
    warmup_steps: int = Field(default=40, ge=0)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    prompt_weight: float = Field(default=0.25, ge=0, description="Weight of the prompt's tokens.")
    shown: InterfaceMix = InterfaceMix()


class SkillEvaluationParams(Parameters):
    """Which tasks are evaluated and how intervals are drawn."""

    seed: int = Field(default=12, ge=0)
    tasks: int = Field(default=2_000, ge=5, le=MOST_TASKS, description="Tasks in each range.")
    resamples: int = Field(
        default=10_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of phrasings."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1)


class SkillsParams(Parameters):
    """Everything that decides what the skills are and how they are measured."""

    name: str = Field(
        default="skills",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names tokenizer/<name>, core/<name>, core/<name>.controller and evaluation/<name>.",
    )
    division: Division = Field(default=Division.TRUNCATE, description="Convention of divide and modulo.")
    phrases: PhraseParams = PhraseParams()
    tokens: TokenParams = TokenParams()
    controller: ControllerParams = ControllerParams()
    core: SkillCoreParams = SkillCoreParams()
    evaluation: SkillEvaluationParams = SkillEvaluationParams()
