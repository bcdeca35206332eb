"""What a learner needs of a frozen host: a causal language model, where it computes, and how wide it is."""

from typing import Any, Protocol

import torch


class Substrate(Protocol):
    """A frozen causal language model of Hugging Face, in evaluation mode, without a parameter to train."""

    @property
    def model(self) -> Any:
        """The model, with its head."""

    @property
    def device(self) -> torch.device:
        """Where its weights are."""

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in: float32 or bfloat16."""

    @property
    def width(self) -> int:
        """Hidden size d."""

    @property
    def layers(self) -> int:
        """How many decoder layers there are."""
