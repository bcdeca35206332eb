"""A GGUF file as a normal Hugging Face directory: read once with transformers, kept in float32.

GGUF keeps most matrices in 4 to 8 bits. What they stand for is written out in float32, so that nothing is
rounded a second time; equal files give equal tensors.
"""

import io
import os
from collections.abc import Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from torch import Tensor

from tasks.errors import BadHost
from tasks.hosts.folder import TOKENIZER
from tasks.payload import save_weights

WEIGHTS = "model.safetensors"

_MAGIC = b"GGUF"


def is_gguf(path: Path) -> bool:
    """Whether a regular file is there that begins as a GGUF file does."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def convert_gguf(path: Path, folder: Path) -> None:
    """Write the model and the tokenizer of a GGUF file into `folder`; some 20 s for 135 M parameters.

    Raises `BadHost` for a file that cannot be read, or whose architecture transformers does not read from
    GGUF.
    """
    if not is_gguf(path):
        raise BadHost(f"{path} is no GGUF file; give a GGUF file or a Hugging Face model directory")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

    source, name = str(path.parent), path.name
    try:
        with redirect_stderr(io.StringIO()):  # its bars cannot be switched off
            model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                source, gguf_file=name, dtype=torch.float32, local_files_only=True
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(source, gguf_file=name, local_files_only=True)
        folder.mkdir(parents=True, exist_ok=True)
        save_weights(_untied(model.state_dict()), folder / WEIGHTS)
        # The numbers are no longer quantised, and a description that says so would be believed.
        model.config.__dict__.pop("quantization_config", None)
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(folder)
        tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # a full disk, or a folder that cannot be written
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadHost(f"{path} was not read as a model ({reason}); use another file") from error
    (folder / WEIGHTS).chmod(0o644)
    for file in folder.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())


def _untied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor once, under its first name: an output head that is the embedding needs no copy."""
    seen: set[int] = set()
    kept = {}
    for name, tensor in state.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            kept[name] = tensor.contiguous()
    return kept
