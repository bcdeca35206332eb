"""Pinning what a command chose, and names for that: checked before the command works, given after."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.formatting import counted

if TYPE_CHECKING:
    from store import Ref, Snapshot, Store


@dataclass(frozen=True)
class Pinned:
    """A snapshot that a command asked for, the commit that pinned it, and whether that commit is new."""

    snapshot: "Snapshot"
    commit: int
    new: bool

    @property
    def line(self) -> str:
        """What was done, for people: who repeats a pin must not think that it is in the log twice."""
        elements = counted(self.snapshot.count, "element")
        if self.new:
            return f"pinned {elements} as snapshot {self.snapshot.id}"
        return f"snapshot {self.snapshot.id} of {elements} was pinned already, in commit {self.commit:,}"


def pin(store: "Store", refs: "Sequence[Ref]", *, message: str) -> Pinned:
    """Pin an exact set of versions, or find out which commit did so before."""
    seen = store.tip().sequence
    snapshot = store.pin(refs, message=message)
    commit = store.history.last_pin(snapshot.id)
    assert commit is not None, "what is pinned is in the log"
    # Somebody else may have pinned the same set since we looked; that entry has another message or origin.
    ours = commit.sequence > seen and (commit.message, commit.run) == (message, store.run)
    return Pinned(snapshot, commit.sequence, ours)


def check_names(
    store: "Store", refs: "Iterable[Ref]", *, tag: str | None, head: str | None, base: str
) -> None:
    """Refuse a tag or head that could not be given to the snapshot of `refs`, before anything is pinned.

    Raises `TagExists` if the tag names another snapshot, `HeadMoved` if the head names another than `base`.
    """
    from store.errors import HeadMoved, TagExists
    from store.format import check_label
    from store.snapshot import snapshot_id

    identity = snapshot_id((ref.name, ref.version) for ref in refs)
    if tag is not None and (named := store.tags().get(check_label(tag, "tag"), identity)) != identity:
        raise TagExists(f"tag {tag} already names snapshot {named[:12]} and never moves; choose another name")
    if head is not None and (now := store.head(head)) not in (None, base, identity):
        raise HeadMoved(
            f"head {head} points to {str(now)[:12]}, not to the base {base[:12]}; start from head:{head}, or "
            "leave out --head and move it afterwards"
        )


def give_names(store: "Store", snapshot: str, *, tag: str | None, head: str | None, base: str) -> list[str]:
    """Tag a snapshot and move a head to it from `base` (or make it), and say so in lines for people.

    Raises `HeadMoved` if somebody moved the head meanwhile.
    """
    lines = []
    if tag is not None:
        store.tag(tag, snapshot)
        lines.append(f"{tag} now names it")
    if head is not None:
        store.move_head(head, snapshot, expect=None if store.head(head) is None else base)
        lines.append(f"head {head} now points to it")
    return lines
