"""Seeded random streams by purpose, so that no draw depends on how many others came before."""

import hashlib

import numpy as np


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """The private generator of a purpose under a seed."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
