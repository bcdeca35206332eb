"""Hosts that lie in no folder: of a model that is in memory, or of parts that nobody may open."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from store import Ref
from tasks.hosts import Host


@dataclass(frozen=True)
class MadeParts:
    """A model without a tokenizer."""

    made: Any

    def config(self) -> PretrainedConfig:
        return self.made.config  # type: ignore[no-any-return]

    def tokenizer(self) -> PreTrainedTokenizerFast:
        pytest.fail("a host without a tokenizer was given a text")

    def model(self, _device: torch.device, _dtype: torch.dtype) -> PreTrainedModel:
        return self.made  # type: ignore[no-any-return]


class NoParts:
    """What is left of a host where everything is published: its name and its numbers."""

    def config(self) -> Any:
        pytest.fail("the configuration was read")

    def tokenizer(self) -> Any:
        pytest.fail("the tokenizer was opened")

    def model(self, *_: object) -> Any:
        pytest.fail("the model was opened")


def host_of(model: Any, dtype: torch.dtype = torch.float32) -> Host:
    """A host of a model in memory."""
    return Host(Ref("host/made", "ab" * 32), torch.device("cpu"), dtype, MadeParts(model))


def closed(host: Host) -> Host:
    """The same host, of which nothing may be opened."""
    return replace(host, parts=NoParts())
