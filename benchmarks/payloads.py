"""The elements that every contender writes and reads: incompressible payloads of 64 KB, from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from store import Element

PAYLOAD_BYTES = 65_536
_SEED = 20
_POOL_BYTES = 64 * 1024**2
_STEP = 7919 * 8
"""Odd multiples of eight walk through the whole pool before they repeat."""


@cache
def _pool() -> bytes:
    return random.Random(_SEED).randbytes(_POOL_BYTES)


def warm_up() -> None:
    """Make the pool, which takes a third of a second."""
    _pool()


def payload(number: int) -> bytes:
    """Return payload `number`: a piece of one random pool that begins with the number, so that all differ."""
    start = number * _STEP % (_POOL_BYTES - PAYLOAD_BYTES)
    return number.to_bytes(8, "little") + _pool()[start : start + PAYLOAD_BYTES - 8]


def elements(count: int, *, first: int = 0) -> Iterator[Element]:
    """Yield elements as a memory build publishes them."""
    for number in range(first, first + count):
        yield Element(
            "memory",
            f"doc/{number:07d}",
            payload(number),
            media="application/octet-stream",
            provenance={"recipe": f"{number:064x}", "source": f"document {number}", "tokens": 312},
            facts={"token_recall": 1.0, "steps": 300},
        )
