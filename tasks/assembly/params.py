"""Parameters of the residual-assembly core: its shape and its training."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.parameters import Parameters

LONGEST_DISTANCE = 4096
"""Nodes between two taps of a causal mixing: a core carries as many for each tap."""


class CoreArchitecture(Parameters):
    """What fixes the shapes of a core, the arithmetic of its iterations, and the weight rule it is used with.

    FEM-ASM fixes the form of the iteration, the start of gamma and, in its energy example, alpha = 0.25;
    every other default is ours.
    """

    width: int = Field(default=256, ge=64, description="d, width of a node state.")
    iterations: int = Field(
        default=3, ge=1, le=64, description="Passes of the shared operators over the nodes."
    )
    hidden: int = Field(default=384, ge=1, description="Hidden width of a layer's gated map.")
    kernel: int = Field(default=4, ge=2, description="Taps of a layer's causal mixing.")
    dilations: tuple[int, ...] = Field(
        default=(1, 4), description="Distance between taps in each layer of S."
    )
    correction_hidden: int = Field(default=256, ge=1, description="Hidden width of the bounded correction.")
    alpha: float = Field(default=0.5, gt=0, le=1, description="Step of the residual substep.")
    eps: float = Field(
        default=0.1,
        gt=0,
        description="Softening of W / (W + eps): the weight at which an element has half its say.",
    )
    gamma: float = Field(default=0.18, ge=0, description="Initial bound of the learned correction (FEM-ASM).")
    agreement_margin: float = Field(
        default=4.0,
        ge=0,
        description="Standard deviations above chance below which the system gives evidence no weight.",
    )
    proposal_rms: float = Field(
        default=2.0,
        gt=0,
        description="Initial size of a proposal's coordinates; lifted input codes have 1.",
    )
    code_margin: float = Field(
        default=6.0, gt=0, description="Initial nats by which a token's own code beats one a bit away."
    )
    initial_trust: float = Field(default=2.0, description="Initial log-odds of copying supported evidence.")
    gain_bound: float = Field(
        default=5.0, gt=0, description="Most nats that one observed token speaks for or against evidence."
    )
    prior_count: float = Field(
        default=2.0, gt=0, description="Observed tokens by which the evidence's mean gain is shrunk."
    )
    code_seed: int = Field(
        default=16, ge=0, description="Seed of the frozen lift of the Binary16 token codes."
    )

    @field_validator("dilations")
    @classmethod
    def _distances_are_positive(cls, dilations: tuple[int, ...]) -> tuple[int, ...]:
        if not dilations or not all(1 <= distance <= LONGEST_DISTANCE for distance in dilations):
            raise ValueError(
                f"dilations {dilations} must name one distance from 1 to {LONGEST_DISTANCE} per layer, as in "
                "(1, 4)"
            )
        return dilations


class EvidenceMix(Parameters):
    """How often an attachment row shows each kind of evidence in training; shares are normalised.

    Rows with forced wrong evidence teach the core to compare evidence with the prompt, rows with the
    system's own weight teach it what a weight below one means.
    """

    right: float = Field(default=0.25, ge=0, description="Right cells, weight 1.")
    right_weighed: float = Field(default=0.2, ge=0, description="Right cells, the system's own weight.")
    wrong: float = Field(default=0.15, ge=0, description="Another document's cells, weight 1.")
    wrong_weighed: float = Field(
        default=0.1, ge=0, description="Another document's cells, the system's own weight."
    )
    text: float = Field(
        default=0.2, ge=0, description="The document's own tokens as raw-text evidence, weight 1."
    )
    text_wrong: float = Field(default=0.1, ge=0, description="Another document's tokens, weight 1.")

    @model_validator(mode="after")
    def _something_is_shown(self) -> Self:
        if sum(self.shares()) <= 0:
            raise ValueError("the evidence mix is empty; give at least one kind a positive share")
        return self

    def shares(self) -> tuple[float, ...]:
        """The shares in the order of the fields."""
        return tuple(getattr(self, name) for name in type(self).model_fields)


class AssemblyParams(Parameters):
    """Everything that decides the bytes of a trained core, besides the elements it is trained on."""

    architecture: CoreArchitecture = CoreArchitecture()
    evidence: EvidenceMix = EvidenceMix()
    name: str = Field(
        default="assembly",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names the element core/<name>.",
    )
    seed: int = Field(default=3, ge=0, description="Seed of the initial weights and of the data order.")
    steps: int = Field(default=450, ge=1, description="Updates; language and attachment batches take turns.")
    attachment_every: int = Field(default=4, ge=1, description="Every n-th update is on an attachment batch.")
    language_rows: int = Field(default=24, ge=1, description="Sequences in a language batch.")
    language_tokens: int = Field(default=64, ge=2, description="Tokens of a language sequence.")
    attachment_rows: int = Field(default=40, ge=1, description="Sequences in an attachment batch.")
    cue_tokens: int = Field(default=32, ge=1, description="Visible prompt of an attachment sequence.")
    target_tokens: int = Field(default=8, ge=1, description="Tokens predicted after the prompt.")
    rate: float = Field(
        default=4e-3, gt=0, description="Peak AdamW rate (FEM-ASM: 1.5e-4, for models of its size)."
    )
    rate_floor: float = Field(default=1e-4, ge=0, description="Rate at the end of the cosine.")
    warmup_steps: int = Field(default=40, ge=0, description="Updates of linear warm-up.")
    weight_decay: float = Field(default=0.01, ge=0, description="AdamW decay of matrices.")
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    max_elements: int = Field(
        default=4096, ge=2, description="Train-split elements held for attachment batches."
    )
    validation_rows: int = Field(
        128, ge=1, description="Held-out rows behind each point of the learning curve."
    )
    curve_points: int = Field(default=8, ge=1, description="Points of the learning curve.")


class ReadingArchitecture(Parameters):
    """The arithmetic of cross-reading before it is trained; every default is ours."""

    context_tokens: int = Field(
        default=16, ge=1, le=64, description="Tokens before the asked one that are compared with an element."
    )
    sharpness: float = Field(default=40.0, gt=0, description="Initial scale of the agreement of contexts.")
    threshold: float = Field(
        default=0.45, description="Initial agreement, of 1 at most, at which reading and nothing are level."
    )
    least_weight: float = Field(
        default=0.02, gt=0, lt=1, description="Weight below which an element is not attached."
    )


class ReadingEvaluationParams(Parameters):
    """How a cross-reading is evaluated; nothing of it decides how one is trained."""

    name: str = Field(
        default="reading", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    elements: int = Field(default=4, ge=1, description="Elements that are retrieved for a task and read in.")
    wrong: Literal["drawn", "nearest"] = Field(
        default="drawn",
        description="Wrong elements: other documents drawn uniformly, or the nearest ones but the own that "
        "are found for the task.",
    )
    scrambled: int = Field(
        default=400, ge=1, description="Most sentences that the signals of retrieval are weighed on."
    )


class ReadingParams(Parameters):
    """Everything that decides a trained cross-reading, besides the core and the memories it is trained on."""

    architecture: ReadingArchitecture = ReadingArchitecture()
    evaluation: ReadingEvaluationParams = ReadingEvaluationParams()
    name: str = Field(
        default="reading",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names the element core/<name of the core>/<name>.",
    )
    seed: int = Field(default=5, ge=0, description="Seed of the rows and of the validation.")
    steps: int = Field(default=120, ge=1, description="Updates; the core itself stays frozen.")
    rows: int = Field(default=16, ge=1, description="Sequences in an update.")
    elements: int = Field(default=4, ge=1, description="Elements that a sequence reads in.")
    right_share: float = Field(
        default=0.6, ge=0, le=1, description="Sequences whose own document is among the elements."
    )
    cue_tokens: int = Field(default=32, ge=1, description="Visible prompt of a sequence.")
    target_tokens: int = Field(default=8, ge=1, description="Tokens predicted after the prompt.")
    rate: float = Field(default=3e-3, gt=0, description="Peak AdamW rate.")
    rate_floor: float = Field(default=1e-4, ge=0, description="Rate at the end of the cosine.")
    warmup_steps: int = Field(default=10, ge=0, description="Updates of linear warm-up.")
    weight_decay: float = Field(default=0.0, ge=0, description="AdamW decay of matrices.")
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    max_elements: int = Field(
        default=512, ge=2, description="Train-split elements that are held decoded for training."
    )
    validation_rows: int = Field(default=64, ge=1, description="Held-out rows behind a validation figure.")

    def identity(self) -> dict[str, Any]:
        """What enters the fingerprint of a cross-reading: how it is evaluated does not."""
        return self.model_dump(mode="json", exclude={"evaluation"})
