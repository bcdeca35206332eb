"""Safetensors bytes as numpy arrays and back, without a copy, so that a chart can stay in a mapped file."""

import itertools
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from safetensors.numpy import save

from tasks.errors import BadPayload

_DTYPES = {
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I64": np.int64,
    "F32": np.float32,
}
_LENGTH_BYTES = 8


def to_bytes(arrays: Mapping[str, np.ndarray], *, what: str, record: Mapping[str, Any]) -> bytes:
    """Arrays and a JSON record as safetensors; equal inputs give equal bytes.

    `what` names the payload and is its only metadata key: safetensors writes several keys in a random order.
    """
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(save(plain, {what: json.dumps(record, sort_keys=True, separators=(",", ":"))}))


def from_bytes(payload: bytes | memoryview, *, what: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read-only views into `payload`, which may be bytes in memory or a mapped file, and its record.

    Raises BadPayload where the bytes are not a payload named `what` or a tensor leaves them.
    """
    view = memoryview(payload)
    with reading(what):
        (length,) = struct.unpack_from("<Q", view)
        header = json.loads(bytes(view[_LENGTH_BYTES : _LENGTH_BYTES + length]))
        record = json.loads(header.pop("__metadata__")[what])
        body = view[_LENGTH_BYTES + length :]
        arrays = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(body[begin:end], dtype=_DTYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"])
            arrays[name].flags.writeable = False
    return arrays, record


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what goes wrong while reading a payload named `what` into BadPayload."""
    try:
        yield
    except (struct.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise BadPayload(f"the payload does not hold {what} ({error}); build the index again") from error


def pack_strings(strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 bytes (uint8) of the strings end to end, and their offsets (int64, one more than strings)."""
    encoded = [string.encode() for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(data: np.ndarray, offsets: np.ndarray) -> tuple[str, ...]:
    """The strings of `pack_strings`."""
    raw = data.tobytes()
    bounds = offsets.tolist()
    return tuple(raw[begin:end].decode() for begin, end in itertools.pairwise(bounds))
