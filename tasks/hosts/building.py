"""A model and its tokenizer from the files of a host, or only its outline, which costs no memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tasks.errors import BadHost
from tasks.hosts.folder import CONFIG, TOKENIZER
from tasks.hosts.manifest import HostManifest

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

_MOST_DESCRIBED = 4
"""Times as many parameters as the files hold that a configuration may describe: tied ones are held once."""


def end_of_sequence(config: "PreTrainedConfig") -> int:
    """The id of the token that ends a text; raises `BadHost` for a model without one."""
    ends = config.get_text_config().eos_token_id
    end = ends[0] if isinstance(ends, list) and ends else ends
    if not isinstance(end, int):
        raise BadHost(f"{CONFIG} names no end-of-sequence token; add eos_token_id to it")
    return end


def check_buildable(folder: Path, manifest: HostManifest) -> None:
    """Build a host's model without its numbers, in a second or two, and its tokenizer.

    Raises `BadHost` as `build_model` and `build_tokenizer` do: for tensors that are missing or of another
    shape, and for a configuration from which no model can be built.
    """
    build_tokenizer(folder, build_model(folder, manifest, torch.float32, only_outline=True).config)


def build_config(manifest: HostManifest) -> "PreTrainedConfig":
    """The configuration of a published host; raises `BadHost` when transformers knows no such model."""
    from transformers import AutoConfig

    try:
        kind = str(manifest.config["model_type"])
        return AutoConfig.for_model(
            kind, **{key: value for key, value in manifest.config.items() if key != "model_type"}
        )
    except Exception as error:  # whatever a configuration leads the library into
        raise BadHost(
            f"{CONFIG} was not read as that of a causal language model ({_reason(error)}); add the host again"
        ) from error


def build_model(
    folder: Path, manifest: HostManifest, dtype: torch.dtype, *, only_outline: bool = False
) -> "PreTrainedModel":
    """The model of a host's folder; its outline has shapes alone, and reads no more than the files' heads.

    Raises `BadHost` when transformers does not read it, or it is not whole.
    """
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
            device_map="meta" if only_outline else None,
        )
    except Exception as error:  # whatever a configuration leads the library into
        raise BadHost(
            f"{folder} was not read as a causal language model ({_reason(error)}); fetch or save the model "
            "again"
        ) from error
    model: PreTrainedModel = loaded[0]
    report: dict[str, Any] = loaded[1]
    faults = _faults(report) or _dropped(model, report)
    if faults:
        raise BadHost(f"{folder} {faults} of {manifest.architecture}; save the whole model again")
    return model


def _faults(report: dict[str, Any]) -> str:
    """What is missing and what does not fit, in words; nothing for a whole model."""
    missing = sorted(report["missing_keys"])
    odd = sorted(
        (str(name), tuple(found), tuple(needed)) for name, found, needed in report["mismatched_keys"]
    )
    faults = []
    if missing:
        faults.append(f"lacks {_count(missing)} (e.g. {missing[0]})")
    if odd:
        name, found, needed = odd[0]
        faults.append(f"misshapes {_count(odd)} (e.g. {name} is {found} in place of {needed})")
    return " and ".join(faults)


def _dropped(model: "PreTrainedModel", report: dict[str, Any]) -> str:
    """Which weights of the files the model's layers have no place for, in words; nothing where all count.

    The library leaves them out without a word, and what is computed is another model than the files hold. It
    may leave out what stands beside the layers, such as heads for other work, and constants of old releases.
    """
    modules = dict(model.named_modules())
    known = model.state_dict().keys()
    odd = []
    for name in sorted(map(str, report["unexpected_keys"])):
        *parts, last = name.split(".")
        lists = [".".join(parts[:place]) for place, part in enumerate(parts) if part.isdecimal()]
        if not any(isinstance(modules.get(path), nn.ModuleList) for path in lists):
            continue
        if ".".join(parts) not in modules or last == "weight" or f"{'.'.join(parts)}.weight" in known:
            odd.append(name)
    if not odd:
        return ""
    return f"holds {_count(odd)} more than {CONFIG} describes (e.g. {odd[0]})"


def _count(tensors: list[Any]) -> str:
    return f"{len(tensors):,} tensor{'s' if len(tensors) > 1 else ''}"


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
    if not isinstance(layers, int) or not 1 <= layers <= len(manifest.tensors):
        raise ValueError(f"it describes {str(layers)[:40]} layers and holds {len(manifest.tensors)} tensors")
    with torch.device("meta"):
        outline: Any = AutoModelForCausalLM
        described = sum(tensor.numel() for tensor in outline.from_config(config).parameters())
    if described > _MOST_DESCRIBED * manifest.parameters:
        raise ValueError(f"it describes {described} parameters and holds {manifest.parameters}")


def build_tokenizer(folder: Path, config: "PreTrainedConfig") -> "PreTrainedTokenizerFast":
    """The tokenizer of a host's folder; raises `BadHost` for one that is none, or does not fit the model."""
    from transformers import PreTrainedTokenizerFast

    # tokenizer.json alone: other files may hold templates, which are programs of a kind.
    try:
        make: Any = PreTrainedTokenizerFast
        tokenizer: PreTrainedTokenizerFast = make(tokenizer_file=str(folder / TOKENIZER))
    except Exception as error:
        raise BadHost(f"{folder / TOKENIZER} is no tokenizer ({_reason(error)}); save it again") from error
    size = config.get_text_config().vocab_size
    if len(tokenizer) > size:
        raise BadHost(
            f"{folder / TOKENIZER} has {len(tokenizer)} tokens and the model {size}; they do not belong "
            "together"
        )
    end = tokenizer.convert_ids_to_tokens(end_of_sequence(config))
    if isinstance(end, str):
        tokenizer.eos_token = end
    return tokenizer


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
