"""Which snapshots hold an element, how they are named, and which evaluations were made of them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from store import Row, Store
from store.errors import ElementNotFound, IntegrityError, SnapshotNotFound
from tasks.progress import Progress, silent


def holders_of(store: Store, row: Row, progress: Progress = silent) -> list[dict[str, Any]]:
    """The snapshots that hold an exact version, in the order in which they were pinned, with their names.

    Of each snapshot the head record and one row group are read.
    """
    pinned = {commit.snapshot: commit for commit in store.log() if commit.snapshot}
    names = names_of(store)
    found = []
    for done, (identity, commit) in enumerate(pinned.items(), start=1):
        with suppress(SnapshotNotFound, ElementNotFound):  # collected since, or another set
            if (
                commit.sequence >= row.commit
                and store.snapshot(identity).get(row.name).version == row.version
            ):
                shown = {"snapshot": identity, "time": commit.time, "names": names.get(identity, [])}
                found.append({**shown, "message": commit.message})
        progress(done, len(pinned))
    return found


def names_of(store: Store) -> dict[str, list[str]]:
    """Tags as `tag:x` and heads as `head:x`, by the snapshots that they name; damaged ones are left out."""
    names: dict[str, list[str]] = {}
    for noun, named in (("tag", store.tags(damaged=_ignore)), ("head", store.heads(damaged=_ignore))):
        for name, identity in named.items():
            names.setdefault(identity, []).append(f"{noun}:{name}")
    return {identity: sorted(given) for identity, given in names.items()}


def evaluations_of(store: Store, snapshots: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The evaluations of some snapshots, oldest first."""
    wanted = {entry["snapshot"] for entry in snapshots}
    rows = [
        row
        for row in store.catalog().rows("evaluation")
        if str(row.provenance.get("snapshot")) in wanted and "samples" in row.provenance
    ]
    return [
        {
            "evaluation": str(row.ref),
            "snapshot": row.provenance["snapshot"],
            "core": row.provenance.get("core"),
            "time": store.history.at(row.commit).time,
        }
        for row in sorted(rows, key=lambda row: (row.commit, row.name))
    ]


def _ignore(error: IntegrityError) -> None:
    """Who asks for lineage is not told of damage elsewhere; `cellar verify` is there for that."""
