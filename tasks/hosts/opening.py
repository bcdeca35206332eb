"""A host in memory: frozen, proven to be the published one, on a device and in a number format."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import nn

from store import Ref
from tasks.errors import BadHost, HostChanged
from tasks.hosts.digests import read_manifest
from tasks.hosts.folder import CONFIG, TOKENIZER
from tasks.hosts.manifest import HostManifest
from tasks.processor import product_dtype
from tasks.progress import Progress, silent

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

HostDtype = Literal["auto", "float32", "bfloat16"]
_MOST_DESCRIBED = 4
"""Times as many parameters as the files hold that a configuration may describe: tied ones are held once."""


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

    Raises `HostChanged` when a tensor, the configuration or the tokenizer is another, and `BadHost` when
    transformers does not read it.
    """
    check_folder(ref, manifest, folder, progress=progress)
    chosen = host_dtype(dtype, device)
    model = _load_model(folder, manifest, chosen)
    nn.Module.eval(nn.Module.to(model, device).requires_grad_(False))
    return Host(ref, model, _load_tokenizer(folder, model), device, chosen)


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


def end_of_sequence(model: "PreTrainedModel") -> int:
    """The id of the token that ends a text; raises `BadHost` for a model without one."""
    ends = model.config.get_text_config().eos_token_id
    end = ends[0] if isinstance(ends, list) and ends else ends
    if not isinstance(end, int):
        raise BadHost(f"{CONFIG} names no end-of-sequence token; add eos_token_id to it")
    return end


def _load_model(folder: Path, manifest: HostManifest, dtype: torch.dtype) -> "PreTrainedModel":
    from transformers import AutoModelForCausalLM

    try:
        _quiet()
        _check_size(folder, manifest)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            local_files_only=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # they are refused below, by name
            output_loading_info=True,
        )
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadHost(f"{folder} was not read as a causal language model ({reason})") from error
    model: PreTrainedModel = loaded[0]
    report: dict[str, Any] = loaded[1]
    lacking = sorted({*report["missing_keys"], *(str(key[0]) for key in report["mismatched_keys"])})
    if lacking:
        raise BadHost(
            f"{folder} lacks or misshapes {len(lacking)} tensors of {manifest.architecture}, e.g. "
            f"{lacking[0]}; save the whole model again"
        )
    return model


def _quiet() -> None:
    """What is wrong is raised here; the library's bars and reports would say it a second time."""
    from transformers.utils.logging import disable_progress_bar, set_verbosity_error

    for silence in (disable_progress_bar, set_verbosity_error):
        call: Any = silence
        call()


def _check_size(folder: Path, manifest: HostManifest) -> None:
    """Before anything is allocated: the configuration must describe about as much as the files hold."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    text = config.get_text_config()
    layers = getattr(text, "num_hidden_layers", 0)
    if not isinstance(layers, int) or layers > len(manifest.tensors):
        raise ValueError(f"it describes {layers} layers and holds {len(manifest.tensors)} tensors")
    with torch.device("meta"):
        outline: Any = AutoModelForCausalLM
        described = sum(tensor.numel() for tensor in outline.from_config(config).parameters())
    if described > _MOST_DESCRIBED * manifest.parameters:
        raise ValueError(f"it describes {described} parameters and holds {manifest.parameters}")


def _load_tokenizer(folder: Path, model: "PreTrainedModel") -> "PreTrainedTokenizerFast":
    from transformers import PreTrainedTokenizerFast

    # tokenizer.json alone: other files may hold templates, which are programs of a kind.
    try:
        make: Any = PreTrainedTokenizerFast
        tokenizer: PreTrainedTokenizerFast = make(tokenizer_file=str(folder / TOKENIZER))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise BadHost(f"{folder / TOKENIZER} is no tokenizer ({reason}); save it again") from error
    if len(tokenizer) > model.config.get_text_config().vocab_size:
        raise BadHost(
            f"{folder / TOKENIZER} has {len(tokenizer)} tokens and the model "
            f"{model.config.get_text_config().vocab_size}; they do not belong together"
        )
    end = tokenizer.convert_ids_to_tokens(end_of_sequence(model))
    if isinstance(end, str):
        tokenizer.eos_token = end
    return tokenizer
