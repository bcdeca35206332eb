"""Documents made of words that no two of them share, except where a test says so."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tasks.audit import AuditDocuments, Side

Triple = tuple[str, Side, np.ndarray]


def made(*documents: tuple[str, Side, Sequence[int]]) -> AuditDocuments:
    """Documents from lists of ids."""
    return AuditDocuments.of((name, side, np.array(ids, np.uint16)) for name, side, ids in documents)


def windows(ids: Sequence[int], n: int) -> set[tuple[int, ...]]:
    """The distinct runs of n ids, in plain Python."""
    return {tuple(ids[at : at + n]) for at in range(len(ids) - n + 1)}


@pytest.fixture
def planted() -> Callable[[int], list[Triple]]:
    """Random documents of which some are copies of another one with a share of the tokens exchanged."""

    def make(seed: int, count: int = 60) -> list[Triple]:
        rng = np.random.default_rng(seed)
        found: list[Triple] = []
        for number in range(count):
            ids = rng.integers(2, 4000, int(rng.integers(3, 120))).astype(np.uint16)
            if number % 3 == 2:
                ids = found[int(rng.integers(len(found)))][2].copy()
                changed = rng.random(len(ids)) < rng.choice([0.0, 0.02, 0.1, 0.3])
                ids[changed] = rng.integers(2, 4000, int(changed.sum()))
            found.append((f"memory/d{number:03d}", Side(int(rng.integers(len(Side)))), ids))
        return found

    return make
