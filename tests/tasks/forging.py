"""Payloads as somebody might forge them: bytes, headers and tables that are changed at random."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

JSON_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.sampled_from([2**31, 2**40, 2**63, 2**80, -(2**70), 1e308, float("inf"), float("nan"), 0.5]),
    st.sampled_from(["", "x", "F32", "U8", "I64", "BOOL", "memory", "7"]),
    st.lists(st.integers(-1, 2**40), max_size=3),
    st.dictionaries(
        st.sampled_from(["memory", "text", "width", "shape"]), st.integers(-1, 2**40), max_size=2
    ),
)


@st.composite
def changed_bytes(draw: st.DrawFn, payload: bytes) -> bytes:
    """The payload cut, with other bytes somewhere, or with a piece of itself elsewhere."""
    data = bytearray(payload)
    # Headers lie at the beginning or the end: most changes go there.
    near = st.one_of(st.integers(0, min(len(data) - 1, 400)), st.integers(0, len(data) - 1))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(near) if draw(st.booleans()) else len(data) - 1 - draw(near)
        match draw(st.sampled_from(["flip", "cut", "write"])):
            case "flip":
                data[place] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[place : place + draw(st.sampled_from([1, 8, len(data)]))]
            case "write":
                data[place : place + 8] = draw(st.binary(min_size=8, max_size=8))
        if not data:
            return b""
        near = st.integers(0, len(data) - 1)
    return bytes(data)


@st.composite
def changed_header(draw: st.DrawFn, payload: bytes) -> bytes:
    """A safetensors payload whose header, or the record inside it, says something else in one place."""
    length = int.from_bytes(payload[:8], "little")
    header = json.loads(payload[8 : 8 + length])
    [what] = header.get("__metadata__", [None])
    if what is not None and draw(st.booleans()):
        record = json.loads(header["__metadata__"][what])
        header["__metadata__"][what] = json.dumps(draw(_changed(record)))
    else:
        header = draw(_changed(header))
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + payload[8 + length :]


@st.composite
def changed_json(draw: st.DrawFn, payload: bytes) -> bytes:
    """A JSON payload that says something else in one place."""
    return json.dumps(draw(_changed(json.loads(payload)))).encode()


@st.composite
def _changed(draw: st.DrawFn, value: Any) -> Any:
    """JSON with one value replaced, removed or added, at any depth."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        rest = dict(value)
        match draw(st.sampled_from(["inside", "inside", "inside", "remove", "rename"])):
            case "inside":
                rest[key] = draw(_changed(value[key]))
            case "remove":
                del rest[key]
            case "rename":
                rest[draw(st.sampled_from(["x", "tokens", "shape"]))] = rest.pop(key)
        return rest
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(_changed(value[place])), *value[place + 1 :]]
    return draw(JSON_VALUES)


def forged(payload: bytes, *more: Callable[[bytes], st.SearchStrategy[bytes]]) -> st.SearchStrategy[bytes]:
    """The payload changed in one of the ways that are given, or in its bytes."""
    return st.one_of(changed_bytes(payload), *(way(payload) for way in more))
