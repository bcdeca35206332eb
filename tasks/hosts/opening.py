"""A host: frozen, proven to be the published one, on a device and in a number format.

Its parts are read when they are used. Most runs find what they would make published, and need no more than
the name of their host.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import nn

from store import Ref
from tasks.errors import HostChanged
from tasks.hosts.building import build_config, build_model, build_tokenizer, end_of_sequence
from tasks.hosts.digests import read_manifest, tokenizer_digest
from tasks.hosts.manifest import HostManifest
from tasks.processor import product_dtype
from tasks.progress import Display, Progress, shown_by, silent, unseen

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

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


class HostParts(Protocol):
    """Where the parts of a host come from; each is asked for once."""

    def config(self) -> "PreTrainedConfig":
        """The configuration."""
        ...

    def tokenizer(self) -> "PreTrainedTokenizerFast":
        """The tokenizer; raises `HostChanged` when it is another than was published."""
        ...

    def model(self, device: torch.device, dtype: torch.dtype) -> "PreTrainedModel":
        """The frozen model; raises `HostChanged` when anything is another than was published."""
        ...


@dataclass(frozen=True)
class Host:
    """A frozen causal language model of Hugging Face and its tokenizer, both read at their first use.

    `ref` is `host/<name>` with the version that residuals and shadows require.
    """

    ref: Ref
    device: torch.device
    dtype: torch.dtype
    parts: HostParts = field(repr=False, compare=False)

    @cached_property
    def config(self) -> "PreTrainedConfig":
        """The configuration of the model as it was published."""
        return self.parts.config()

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerFast":
        """The tokenizer; raises `HostChanged` when it is another than was published, and `BadHost`."""
        return self.parts.tokenizer()

    @cached_property
    def model(self) -> "PreTrainedModel":
        """The model in evaluation mode on `device`, its weights in `dtype`, without gradients of their own.

        A gradient still passes through it to its inputs. Raises `HostChanged` when a tensor, the
        configuration or the tokenizer is another than was published, `BrokenHost` when a weight is no finite
        number, and `BadHost` when transformers does not read it.
        """
        model = self.parts.model(self.device, self.dtype)
        nn.Module.eval(nn.Module.to(model, self.device).requires_grad_(False))
        return model

    @property
    def width(self) -> int:
        """Numbers of a hidden state."""
        return int(self.config.get_text_config().hidden_size)

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return int(self.config.get_text_config().num_hidden_layers)

    @property
    def vocab_size(self) -> int:
        """Rows of the output head."""
        return int(self.config.get_text_config().vocab_size)

    @property
    def end(self) -> int:
        """The id of the token that ends a text."""
        return end_of_sequence(self.config)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without special ones."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


@dataclass(frozen=True)
class FolderParts:
    """The parts of a published host from its folder, each compared with the manifest before it is used."""

    ref: Ref
    manifest: HostManifest
    folder: Path
    display: Display
    """Of the megabytes that are checked."""

    def config(self) -> "PreTrainedConfig":
        """From the manifest: the folder's is the same, or the model is refused."""
        return build_config(self.manifest)

    def tokenizer(self) -> "PreTrainedTokenizerFast":
        """See `HostParts`."""
        found = replace(self.manifest, tokenizer=tokenizer_digest(self.folder))
        _refuse_difference(self.ref, self.manifest, found, self.folder)
        return build_tokenizer(self.folder, self.config())

    def model(self, device: torch.device, dtype: torch.dtype) -> "PreTrainedModel":
        """See `HostParts`."""
        with self.display() as progress:
            check_folder(self.ref, self.manifest, self.folder, progress=progress)
        return build_model(self.folder, self.manifest, dtype)


def host_of_folder(
    ref: Ref,
    manifest: HostManifest,
    folder: Path,
    *,
    device: torch.device,
    dtype: HostDtype = "auto",
    display: Display = unseen,
) -> Host:
    """The host in `folder`, which must turn out to be the one of `manifest` when a part of it is used."""
    return Host(ref, device, host_dtype(dtype, device), FolderParts(ref, manifest, folder, display))


def load_host(
    ref: Ref,
    manifest: HostManifest,
    folder: Path,
    *,
    device: torch.device,
    dtype: HostDtype = "auto",
    progress: Progress = silent,
) -> Host:
    """As `host_of_folder`, with everything read; `progress` counts megabytes of checking.

    Raises as `Host.model` and `Host.tokenizer` do.
    """
    host = host_of_folder(ref, manifest, folder, device=device, dtype=dtype, display=shown_by(progress))
    _ = host.model, host.tokenizer
    return host


def check_folder(ref: Ref, manifest: HostManifest, folder: Path, *, progress: Progress = silent) -> None:
    """Compare every byte of a host's folder with its manifest; raises `HostChanged` at a difference."""
    _refuse_difference(ref, manifest, read_manifest(folder, progress=progress), folder)


def _refuse_difference(ref: Ref, manifest: HostManifest, found: HostManifest, folder: Path) -> None:
    difference = manifest.difference(found)
    if difference is not None:
        raise HostChanged(
            f"{folder} is not {ref.name}@{ref.version[:12]}: {difference}; fetch it again, or add what is "
            "there under another name"
        )


def host_dtype(dtype: HostDtype, device: torch.device) -> torch.dtype:
    """The number format of a host's weights and products; see `HostParams.dtype`."""
    chosen: torch.dtype = product_dtype(device) if dtype == "auto" else getattr(torch, dtype)
    return chosen
