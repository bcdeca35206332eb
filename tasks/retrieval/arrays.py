"""Safetensors bytes as numpy arrays and back, without a copy, so that a chart can stay in a mapped file."""

import itertools
import json
import math
import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
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
        if not isinstance(record, dict):
            raise ValueError("its record is no object")
        body = view[_LENGTH_BYTES + length :]
        return {name: _array(body, name, entry) for name, entry in header.items()}, record


def mapped(path: Path) -> memoryview:
    """The bytes of a file, read where they are touched: what `from_bytes` views in them stays on disk."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _array(body: memoryview, name: str, entry: Mapping[str, Any]) -> np.ndarray:
    begin, end = entry["data_offsets"]
    shape, dtype = entry["shape"], np.dtype(_DTYPES[entry["dtype"]])
    if not all(type(number) is int and number >= 0 for number in (begin, end, *shape)):
        raise ValueError(f"{name} has an impossible place or shape")
    if not begin <= end <= len(body) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} is not where its header says")
    array = np.frombuffer(body[begin:end], dtype=dtype).reshape(shape)
    array.flags.writeable = False
    return array


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what goes wrong while reading a payload named `what` into BadPayload."""
    try:
        yield
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadPayload(f"the payload does not hold {what} ({error}); build the index again") from error


def part(parts: Mapping[str, np.ndarray], name: str, dtype: type, *shape: int | None) -> np.ndarray:
    """One array of a payload; raises ValueError unless it has that type and shape (None: any size)."""
    found = parts[name]
    fits = len(shape) == found.ndim and all(
        size in (None, own) for size, own in zip(shape, found.shape, strict=True)
    )
    if found.dtype != dtype or not fits:
        raise ValueError(f"{name} is {found.dtype} {found.shape}")
    return found


def check_bounds(bounds: np.ndarray, total: int, what: str) -> None:
    """Raise ValueError unless `bounds` (integers) never fall from 0 to `total`, so that they cut ranges."""
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != total or (bounds[1:] < bounds[:-1]).any():
        raise ValueError(f"{what} do not rise from 0 to {total}")


def check_finite(array: np.ndarray, what: str) -> None:
    """Raise ValueError unless all numbers are finite."""
    if not np.isfinite(array).all():
        raise ValueError(f"{what} holds numbers that are not finite")


def pack_strings(strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 bytes (uint8) of the strings end to end, and their offsets (int64, one more than strings)."""
    encoded = [string.encode() for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(data: np.ndarray, offsets: np.ndarray) -> tuple[str, ...]:
    """The strings of `pack_strings`; raises ValueError for offsets that do not cut the bytes into strings."""
    check_bounds(offsets, len(data), "the offsets of strings")
    raw = data.tobytes()
    bounds = offsets.tolist()
    return tuple(raw[begin:end].decode() for begin, end in itertools.pairwise(bounds))


def best_first(score_E: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k greatest scores and their places (int64), best first; equal scores in the order of places."""
    count = min(k, len(score_E))
    least = np.partition(score_E, len(score_E) - count)[len(score_E) - count]
    above = np.flatnonzero(score_E > least)
    chosen = np.append(above, np.flatnonzero(score_E == least)[: count - len(above)])
    chosen = chosen[np.lexsort((chosen, -score_E[chosen]))]
    return score_E[chosen], chosen
