"""Safetensors payloads that describe themselves: tensors and one JSON record in the header."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save, save_file
from torch import Tensor, nn

from tasks.errors import BadPayload

M = TypeVar("M", bound=nn.Module)


def pack_tensors(tensors: Mapping[str, Tensor], *, what: str, record: Mapping[str, Any]) -> bytes:
    """Tensors and a JSON record as safetensors; equal inputs give equal bytes.

    `what` names the payload and is its only metadata key: safetensors writes several keys in a random order.
    """
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    return save(plain, {what: json.dumps(record, sort_keys=True, separators=(",", ":"))})


def unpack_tensors(payload: bytes, *, what: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the record of a payload written by `pack_tensors`.

    Raises `BadPayload` when the bytes are no safetensors file or carry no record named `what`.
    """
    # The safetensors library reads metadata from files only; its header is a length and a JSON object.
    length = int.from_bytes(payload[:8], "little")
    try:
        record = json.loads(json.loads(payload[8 : 8 + length])["__metadata__"][what])
        if not isinstance(record, dict):
            raise ValueError("its record is no object")
        return load(payload), record
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, SafetensorError) as error:
        raise BadPayload(f"the payload is not a {what}: {error}; check the reference") from error


def save_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a file of weights as transformers does; raises `OSError` where the system does not take it.

    The library tells a full disk in words alone, which nobody would recognise.
    """
    try:
        save_file(dict(tensors), path, {"format": "pt"})
    except SafetensorError as error:
        if (found := re.search(r"os error (\d+)", str(error))) is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(path)) from error


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Turn what goes wrong while a `what` is made from its own description into `BadPayload`."""
    try:
        yield
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadPayload(f"the {what} does not fit its own description ({reason}); train it again") from error


def load_module(make: Callable[[], M], tensors: Mapping[str, Tensor], *, layers: int) -> M:
    """The module that `make` makes, with `tensors` as its state.

    What a description asks for is compared with the tensors on an outline first, which has shapes but no
    numbers, so that nothing is made that the payload's own size does not answer for. `layers` is how many
    repeated parts there will be. Raises `ValueError` where the shapes or types differ.
    """
    if layers > len(tensors):
        raise ValueError(f"it describes {layers} layers and holds {len(tensors)} tensors")
    with torch.device("meta"):
        outline = make().state_dict()
    if outline.keys() != tensors.keys():
        odd = sorted(outline.keys() ^ tensors.keys())
        raise ValueError(f"tensors are missing or not its own: {', '.join(odd[:3])}")
    for name, expected in outline.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{name} is {found.dtype} {tuple(found.shape)}, not {expected.dtype} {tuple(expected.shape)}"
            )
    module = make()
    module.load_state_dict(dict(tensors))
    return module
