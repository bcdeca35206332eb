"""Seeded random streams by purpose, so that no draw depends on how many others came before."""

import hashlib

import numpy as np


def seed_of(seed: int, *purpose: str | int) -> int:
    """The seed, 128 bits, of a purpose's private stream under a seed."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return int.from_bytes(digest[:16], "big")


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """The private generator of a purpose under a seed."""
    return np.random.default_rng(seed_of(seed, *purpose))
