"""Parameters of shadows: which text is learned, in which blocks, in which steps, and what is held out."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.corpus import glob_below
from tasks.parameters import Parameters

MOST_ALPHA = 1.2
"""Largest scale of a shadow (ANNEAL): a little beyond what was written."""
MOST_CHUNKS = 100_000


WRITTEN = ".written"
"""Ends the names of shadows at full strength, as they were written."""


def unwritten(name: str) -> str:
    """A name of a domain as it is given; raises `ValueError` for one that shadows at full strength have."""
    if name.endswith(WRITTEN):
        raise ValueError(f"{name!r} ends as names of shadows at full strength do; choose another")
    return name


class TextSource(Parameters):
    """Where text lies: a published corpus, or files of one's own."""

    corpus: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="A published corpus by name, e.g. docs; `cellar corpus build` makes one.",
    )
    prefix: str = Field(
        default="", max_length=200, description="Take only documents whose names begin so, e.g. numpy."
    )
    path: Path | None = Field(default=None, description="A text file, or a folder of text files.")
    pattern: str = Field(
        default="**/*.txt", max_length=100, description="Which files of a folder, as a glob below it."
    )

    @field_validator("pattern")
    @classmethod
    def _pattern_stays_below_the_folder(cls, value: str) -> str:
        return glob_below(value)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.corpus is not None and self.path is not None:
            raise ValueError("give a corpus or a path, not both")
        return self

    @property
    def given(self) -> bool:
        """Whether it names any text at all."""
        return self.corpus is not None or self.path is not None

    @property
    def title(self) -> str:
        """What the text is called, without the folders that it lies in; empty where there is none."""
        if self.corpus is not None:
            named = f"corpus {self.corpus}"
        elif self.path is not None:
            named = self.path.name or str(self.path)
        else:
            return ""
        return f"{named}, {self.prefix}*" if self.prefix else named


class HeldParams(Parameters):
    """How much text is taken aside, before anything is learned, for purposes that never meet (ours)."""

    split: Literal["auto", "document", "region"] = Field(
        default="auto",
        description="By whole documents, or by regions at the end of one long text; auto takes documents "
        "where there are at least sixteen.",
    )
    selection_tokens: int = Field(
        default=2_048, ge=64, le=1_000_000, description="Tokens that the search for alpha is scored on."
    )
    guard_tokens: int = Field(
        default=2_048,
        ge=64,
        le=1_000_000,
        description="Tokens that decide, after the search, whether its result is kept or alpha is zero.",
    )
    sealed_tokens: int = Field(
        default=6_144, ge=64, le=1_000_000, description="Tokens that are only ever reported on."
    )

    @property
    def total(self) -> int:
        """Tokens that are taken aside."""
        return self.selection_tokens + self.guard_tokens + self.sealed_tokens


class ShadowParams(Parameters):
    """One domain written into shadows: one SGD step for every chunk of its text."""

    name: str = Field(
        default="domain",
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$",
        description="Names the elements: shadow/<name>.written, and shadow/<name> once consolidated.",
    )
    domain: TextSource = Field(default=TextSource(), description="The text to learn.")
    onto: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Shadows that the host has learned before, by name and in order, or head:NAME for what "
        "is attached there: the text is written on top of them.",
    )
    held: HeldParams = HeldParams()
    layers: tuple[int, ...] | None = Field(
        default=None,
        max_length=1_000,
        description="Decoder layers with a shadow, from 0; otherwise the full-attention layers of a hybrid "
        "model, and every fifth and the last where all are alike (ours).",
    )
    chunk_tokens: int = Field(default=256, ge=8, le=8_192, description="Tokens of a chunk, each read alone.")
    chunks: int = Field(default=60, ge=1, le=MOST_CHUNKS, description="Chunks to learn at most.")
    step_size: float = Field(
        default=0.1,
        gt=0,
        le=1_000,
        description="Step of SGD. On SmolLM2 .1 helps and .3 already harms (ours).",
    )
    normalise: bool = Field(
        default=False,
        description="Divide the gradient by its norm over all shadows, so that every step moves by step_size "
        "(ours).",
    )
    most_rise: float = Field(
        default=3.0,
        gt=0,
        le=100,
        description="Nats above the mean of the last eight chunks at which a chunk's loss counts as an "
        "explosion: the step before it is taken back and writing stops (ours).",
    )
    seed: int = Field(default=0, ge=0, le=2**63 - 1, description="Orders the documents of a source.")

    @field_validator("name")
    @classmethod
    def _name_is_of_a_domain(cls, value: str) -> str:
        return unwritten(value)

    @field_validator("layers")
    @classmethod
    def _layers_ascend(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and (not value or list(value) != sorted(set(value)) or value[0] < 0):
            raise ValueError("layers are different numbers from 0, in ascending order, e.g. [4, 9]")
        return value

    def identity(self) -> dict[str, Any]:
        """What enters fingerprints: all but names and places, whose content counts."""
        return self.model_dump(mode="json", exclude={"name", "domain", "onto"})
