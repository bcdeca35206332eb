"""Which snapshots of heads were evaluated, from the records of evaluations in the store."""

from collections.abc import Sequence

from store import Store
from store.errors import SnapshotNotFound


def unevaluated(store: Store, evaluation: str, heads: Sequence[str] | None = None) -> list[str]:
    """Snapshots that a head points or pointed to and that no such evaluation is of, the newest first.

    Snapshots that were removed since, and those without memories, are left out.

    Raises `SnapshotNotFound` if there is no head of a given name.
    """
    known = store.heads()
    for name in heads or ():
        if name not in known:
            raise SnapshotNotFound(f"there is no head {name} in {store.url}; `cellar head` lists them")
    positions = [position for name in heads or known for position in store.head_log(name)]
    seen = dict.fromkeys(p.snapshot for p in sorted(positions, key=lambda p: p.time, reverse=True))
    done = {
        row.provenance.get("snapshot")
        for row in store.catalog().rows("evaluation")
        if row.name == f"evaluation/{evaluation}"
    }
    return [snapshot for snapshot in seen if snapshot not in done and _has_memories(store, snapshot)]


def _has_memories(store: Store, snapshot: str) -> bool:
    try:
        return "memory" in store.snapshot(snapshot).kinds
    except SnapshotNotFound:
        return False
