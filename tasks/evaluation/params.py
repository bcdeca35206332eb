"""Parameters of attachment evaluation."""

from pydantic import BaseModel, ConfigDict, Field


class EvaluationParams(BaseModel):
    """Which tasks are made and how intervals are drawn; evidence is weighed by the core's own rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        default="attachment", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Names evaluation/<name>."
    )
    seed: int = Field(default=11, ge=0, description="Seed of tasks, wrong documents, shuffles and resamples.")
    prefix_tasks: int = Field(default=200, ge=0, description="Most prefix completions, one per document.")
    quote_tasks: int = Field(default=300, ge=0, description="Most quote continuations.")
    per_document: int = Field(default=4, ge=1, description="Most tasks of one document, of both kinds.")
    cue_tokens: int = Field(default=32, ge=1, description="Visible prompt of a task.")
    target_tokens: int = Field(default=8, ge=1, description="Tokens to predict after the prompt.")
    batch_tasks: int = Field(default=64, ge=1, description="Tasks scored together.")
    resamples: int = Field(default=10_000, ge=100, description="Bootstrap resamples of documents.")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Coverage of the intervals.")
    addressing_queries: int = Field(
        default=2_000,
        ge=2,
        description="Cues on which the index itself is measured, half prefixes, half quotes.",
    )
    dense_queries: int = Field(
        default=400, ge=1, description="About how many of them the dense baseline answers too."
    )
    language_tokens: int = Field(
        default=20_000,
        ge=0,
        description="Most held-out tokens of the standalone perplexity; 0 leaves it out.",
    )
    language_window: int = Field(default=128, ge=2, description="Tokens of a standalone window.")
