"""What the model publishes and pins: few elements and sets, so that processes often meet over them."""

from __future__ import annotations

from store import Element
from store.snapshot import snapshot_id
from tests.store.samples import BYTES, codec

CODEC = codec()


def _memory(name: str, revision: int, *requires: str) -> Element:
    return Element(
        "memory",
        name,
        f"{name} {revision} ".encode() * 9,
        media=BYTES,
        requires=requires,
        provenance={"recipe": f"{ord(name):064x}", "revision": revision},
    )


ELEMENTS = (
    CODEC,
    *(_memory(name, revision, CODEC.version) for name in "ab" for revision in (1, 2)),
    *(_memory(name, revision) for name in "cd" for revision in (1, 2)),
)
BY_VERSION = {element.version: element for element in ELEMENTS}
SETS = ((0, 1), (0, 2, 3), (5,), (6, 7), (0, 1, 3, 5, 7), (1, 5))
"""Sets to pin, by position in `ELEMENTS`; the last one lacks what its first element requires."""
SNAPSHOTS = tuple(
    snapshot_id((ELEMENTS[n].full_name, ELEMENTS[n].version) for n in chosen) for chosen in SETS
)
UNITS = ((1, 2), (3,), (5, 7), (8, 0))
"""Units of the two builds, by position in `ELEMENTS`."""


def members(snapshot: str) -> list[Element]:
    """Return the elements of a snapshot."""
    return [ELEMENTS[n] for n in SETS[SNAPSHOTS.index(snapshot)]]
