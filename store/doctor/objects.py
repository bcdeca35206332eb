"""Whether what was written is there at once: reads, listings and ranges.

As in `store.doctor.conditions`, every function returns what is wrong, or "" if nothing is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from store.doctor.ground import Ground
from store.errors import KeyMissing

_OBJECTS = 12
_READERS = 4


def reads_see_writes(ground: Ground) -> str:
    """Write, overwrite and delete objects; every read afterwards, on any connection, must see it."""
    backend = ground.backend
    with ThreadPoolExecutor(_READERS) as pool:
        for number in range(_OBJECTS):
            key = ground.key(f"read-{number}")
            for body in (ground.body(), ground.body()):
                backend.put(key, body)
                if any(data != body for data in pool.map(backend.read, [key] * _READERS)):
                    return "a read after a write returns something older"
            backend.delete(key)
            if any(info is not None for info in pool.map(backend.info, [key] * _READERS)):
                return "an object is still there after it was deleted"
            with suppress(KeyMissing):
                backend.read(key)
                return "an object can be read after it was deleted"
    return ""


def listings_see_writes(ground: Ground) -> str:
    """List after writes and after deletes: complete, in order, with sizes, and from a given key on."""
    backend, prefix = ground.backend, ground.key("list/")
    written = {f"{prefix}{number:02d}": b"x" * (number + 1) for number in range(_OBJECTS)}
    for key, body in written.items():
        backend.put(key, body)
    backend.put(ground.key("list-beside"), b"not below the prefix")
    listed = [(item.key, item.size) for item in backend.list(prefix)]
    if listed != [(key, len(body)) for key, body in written.items()]:
        return "a listing after writes is not complete, not in order, or has wrong sizes"
    keys = list(written)
    if [item.key for item in backend.list(prefix, after=keys[4])] != keys[5:]:
        return "a listing from a given key on does not start after it"
    for key in keys[::2]:
        backend.delete(key)
    if [item.key for item in backend.list(prefix)] != keys[1::2]:
        return "a listing after deletes still shows what is gone, or no longer shows what is there"
    return ""


def ranges_are_exact(ground: Ground) -> str:
    """Read parts of an object: in the middle, over its end, and behind it."""
    backend, key, body = ground.backend, ground.key("range"), bytes(range(256)) * 256
    backend.put(key, body)
    for offset, length in ((0, 8), (1, 1), (1000, 5000), (len(body) - 10, 10), (len(body) - 10, 100)):
        if backend.read(key, offset=offset, length=length) != body[offset : offset + length]:
            return "a read of a range returns other bytes"
    if backend.read(key, offset=len(body) + 5, length=10) != b"":
        return "a read behind the end of an object returns bytes"
    return ""
