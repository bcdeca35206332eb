"""Which side of an evaluation an element is on, decided by its identity before any task is made from it."""

import hashlib
from typing import Literal

Split = Literal["train", "validation", "test"]

TRAIN_SHARE = 0.6
VALIDATION_SHARE = 0.1
"""The remaining share is the test split."""


def element_split(full_name: str) -> Split:
    """train, validation or test by the SHA-256 of the element's full name, e.g. `memory/numpy.sort`.

    The same element is on the same side in every run and corpus. Identity is not content: near-duplicates
    may lie on both sides.
    """
    digest = hashlib.sha256(b"split/1\n" + full_name.encode("utf-8")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < TRAIN_SHARE:
        return "train"
    return "validation" if place < TRAIN_SHARE + VALIDATION_SHARE else "test"
