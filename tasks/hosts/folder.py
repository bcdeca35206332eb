"""The files of a host: a Hugging Face directory of which only data is read.

Used are `config.json`, `tokenizer.json` and the safetensors files. Nothing in a folder is executed: a host
that brings code of its own (`auto_map`), or weights that only unpickling reads, is refused.
"""

import json
import stat
from pathlib import Path
from typing import Any

from tasks.errors import BadHost

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
_WEIGHTS = "model*.safetensors"
_MAX_JSON = 64 * 1024**2
"""Bytes of a JSON file: the largest tokenizers in use take some 35 MB."""


def read_json(path: Path) -> Any:
    """The JSON of a host's file; raises `BadHost` when there is none, it is none, or it is too large."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BadHost(f"{path} is no regular file; a host is read from files only")
        if found.st_size > _MAX_JSON:
            raise BadHost(f"{path} has more than {_MAX_JSON} bytes; a host's JSON files are smaller")
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadHost(
            f"{path.parent} has no {path.name}; a host is a folder with {CONFIG}, {TOKENIZER} and "
            "safetensors files"
        ) from error
    except BadHost:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise BadHost(
            f"{path} cannot be read as JSON ({str(error)[:100]}); fetch or save the model again"
        ) from error


def read_config(folder: Path) -> dict[str, Any]:
    """A host's configuration; raises `BadHost` where it is none of a causal model that needs no own code."""
    if not folder.is_dir():
        raise BadHost(f"there is no folder {folder}; fetch the host, or add a model directory or GGUF file")
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise BadHost(f"{folder / CONFIG} is no JSON object; fetch or save the model again")
    named = config.get("architectures")
    if not isinstance(named, list) or not named or not isinstance(named[0], str):
        raise BadHost(f"{folder / CONFIG} names no architecture; it is no model of this kind")
    if "auto_map" in config:
        raise BadHost(
            f"{folder / CONFIG} asks for code of its own (auto_map), which is never run; use a model whose "
            "architecture comes with transformers"
        )
    return config


def used_files(folder: Path) -> list[Path]:
    """The files of a host that are read, there or not."""
    return [folder / CONFIG, folder / TOKENIZER, *sorted(folder.glob(_WEIGHTS))]


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a host, by name; raises `BadHost` where there are none."""
    files = sorted(folder.glob(_WEIGHTS))
    if not files:
        raise BadHost(
            f"{folder} has no {_WEIGHTS}; save the model with safe serialization, other weights are not read"
        )
    for path in files:
        if not path.is_file():
            raise BadHost(f"{path} is no regular file, or a link to one that is gone; save the model again")
    return files
