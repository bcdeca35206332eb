"""Parameters of the low-rank state and of its updates."""

from pydantic import Field

from tasks.parameters import Parameters

MOST_RANK = 256
MOST_LAYERS = 1_000
MODULE = r"^([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,3})?$"
"""Name of a module inside a decoder layer, such as `self_attn.q_proj`; empty: the hidden state itself."""


class LarcParams(Parameters):
    """What decides a slow state before its training, where it acts, and how an episode updates its copy."""

    rank: int = Field(default=4, ge=1, le=MOST_RANK, description="Rank r of the correction B A.")
    deviation: float = Field(
        default=0.02, gt=0, le=10, description="Standard deviation of A before training; B is zero."
    )
    insertion: int = Field(
        default=0,
        ge=0,
        le=MOST_LAYERS,
        description="0: on the input embeddings; l: before decoder layer l (ours).",
    )
    rate: float = Field(default=0.1, gt=0, le=100, description="Step of an episode's plain SGD.")
    tokens: int = Field(default=2_048, ge=16, le=1_048_576, description="Places of a physical batch (ours).")
    checkpointing: bool = Field(
        default=False, description="Recompute a batch in its backward pass, for less memory."
    )
