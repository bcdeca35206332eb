"""Safetensors payloads that describe themselves: tensors and one JSON record in the header."""

import json
from collections.abc import Mapping
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tasks.errors import BadPayload


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
        tensors = load(payload)
        return tensors, dict(record)
    except (ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise BadPayload(f"the payload is not a {what}: {error}; check the reference") from error
