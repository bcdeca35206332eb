"""Elements for tests: deterministic, small, of any kind."""

from __future__ import annotations

import json
import struct

from store import Element

BYTES = "application/octet-stream"


def tensors(*shapes: tuple[int, ...]) -> bytes:
    """Return a safetensors file with float32 tensors `t0`, `t1`, ... of the given shapes, all ones."""
    header: dict[str, object] = {}
    data = b""
    for number, shape in enumerate(shapes):
        count = 1
        for size in shape:
            count *= size
        piece = struct.pack("<f", 1.0) * count
        header[f"t{number}"] = {
            "dtype": "F32",
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(piece)],
        }
        data += piece
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def codec(name: str = "c", *, width: int = 4) -> Element:
    """Return a codec element that memories can require."""
    return Element("codec", name, tensors((width,)), provenance={"recipe": "ab" * 32, "width": width})


def memory(number: int, *, size: int = 200, requires: tuple[str, ...] = ()) -> Element:
    """Return the memory element `number`: its payload is `size` bytes that depend on the number only."""
    payload = (f"document {number} " * (size // 8 + 1)).encode()[:size]
    return Element(
        "memory",
        f"doc/{number:05d}",
        payload,
        media=BYTES,
        requires=requires,
        provenance={"recipe": f"{number:064x}", "source": f"s{number}"},
        facts={"token_recall": 0.99, "steps": number},
    )
