"""Parameters of attachment evaluation."""

from typing import Self

from pydantic import Field, model_validator

from tasks.parameters import Parameters

MOST_TASKS = 100_000
"""Tasks of a kind, in all evaluations: a share of so many is known to three thousandths, while every one is
asked of every searcher or under every condition, so that more only take hours."""
MOST_RESAMPLES = 100_000
"""Bootstrap resamples: the ends of an interval move by less than a hundredth of its width from there on,
while every resample keeps a number for every figure in memory."""
MOST_OF_A_DOCUMENT = 1_000
"""Tasks of one document: each takes another round over all documents."""


class EvaluationParams(Parameters):
    """Which tasks are made and how intervals are drawn; evidence is weighed by the core's own rule."""

    name: str = Field(
        default="attachment", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=11, ge=0, description="Seed of tasks, wrong documents, shuffles and resamples.")
    prefix_tasks: int = Field(
        default=200, ge=0, le=MOST_TASKS, description="Most prefix completions, one per document."
    )
    quote_tasks: int = Field(default=300, ge=0, le=MOST_TASKS, description="Most quote continuations.")
    per_document: int = Field(
        default=4, ge=1, le=MOST_OF_A_DOCUMENT, description="Most tasks of one document, of both kinds."
    )
    cue_tokens: int = Field(default=32, ge=1, description="Visible prompt of a task.")
    target_tokens: int = Field(default=8, ge=1, description="Tokens to predict after the prompt.")
    batch_tasks: int = Field(default=64, ge=1, description="Tasks scored together.")
    resamples: int = Field(
        default=10_000, ge=100, le=MOST_RESAMPLES, description="Bootstrap resamples of documents."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Coverage of the intervals.")
    addressing_queries: int = Field(
        default=2_000,
        ge=2,
        le=MOST_TASKS,
        description="Cues on which the index itself is measured, half prefixes, half quotes.",
    )
    dense_queries: int = Field(
        default=400, ge=1, le=MOST_TASKS, description="About how many of them the dense baseline answers too."
    )
    language_tokens: int = Field(
        default=20_000,
        ge=0,
        description="Most held-out tokens of the standalone perplexity; 0 leaves it out.",
    )
    language_window: int = Field(default=128, ge=2, description="Tokens of a standalone window.")

    @model_validator(mode="after")
    def _some_task_is_made(self) -> Self:
        if not self.prefix_tasks and not self.quote_tasks:
            raise ValueError("prefix_tasks and quote_tasks are both 0, so no task is left; raise one of them")
        return self
