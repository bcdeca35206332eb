"""A host in memory: frozen, proven to be the published one, on a device and in a number format."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import nn

from store import Ref
from tasks.errors import HostChanged
from tasks.hosts.building import build_model, build_tokenizer, end_of_sequence
from tasks.hosts.digests import read_manifest
from tasks.hosts.manifest import HostManifest
from tasks.processor import product_dtype
from tasks.progress import Progress, silent

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

HostDtype = Literal["auto", "float32", "bfloat16"]


class HostIdentity(Protocol):
    """What fingerprints of results hold of their host; a `Host` has it, and so has one that nobody opened."""

    @property
    def ref(self) -> Ref:
        """`host/<name>` with its version."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The numbers that it computes in."""
        ...


@dataclass(frozen=True)
class Host:
    """A frozen causal language model of Hugging Face and its tokenizer.

    `model` is in evaluation mode on `device`, its weights in `dtype` and without gradients of their own; a
    gradient still passes through it to its inputs. `ref` is `host/<name>` with the version that residuals and
    shadows require.
    """

    ref: Ref
    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerFast"
    device: torch.device
    dtype: torch.dtype

    @property
    def width(self) -> int:
        """Numbers of a hidden state."""
        return int(self.model.config.get_text_config().hidden_size)

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return int(self.model.config.get_text_config().num_hidden_layers)

    @property
    def vocab_size(self) -> int:
        """Rows of the output head."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def end(self) -> int:
        """The id of the token that ends a text."""
        return end_of_sequence(self.model)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without special ones."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def load_host(
    ref: Ref,
    manifest: HostManifest,
    folder: Path,
    *,
    device: torch.device,
    dtype: HostDtype = "auto",
    progress: Progress = silent,
) -> Host:
    """The host in `folder`, which must be the one of `manifest`; `progress` counts megabytes of checking.

    Raises `HostChanged` when a tensor, the configuration or the tokenizer is another, `BrokenHost` when a
    weight is no finite number, and `BadHost` when transformers does not read it.
    """
    check_folder(ref, manifest, folder, progress=progress)
    chosen = host_dtype(dtype, device)
    model = build_model(folder, manifest, chosen)
    nn.Module.eval(nn.Module.to(model, device).requires_grad_(False))
    return Host(ref, model, build_tokenizer(folder, model), device, chosen)


def check_folder(ref: Ref, manifest: HostManifest, folder: Path, *, progress: Progress = silent) -> None:
    """Compare every byte of a host's folder with its manifest; raises `HostChanged` at a difference."""
    difference = manifest.difference(read_manifest(folder, progress=progress))
    if difference is not None:
        raise HostChanged(
            f"{folder} is not {ref.name}@{ref.version[:12]}: {difference}; fetch it again, or add what is "
            "there under another name"
        )


def host_dtype(dtype: HostDtype, device: torch.device) -> torch.dtype:
    """The number format of a host's weights and products; see `HostParams.dtype`."""
    chosen: torch.dtype = product_dtype(device) if dtype == "auto" else getattr(torch, dtype)
    return chosen
