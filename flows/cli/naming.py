"""Names for a snapshot that a command is about to pin: checked before it works, given after."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store import Ref, Store


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
