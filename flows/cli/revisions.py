"""Commands that pin a snapshot made from another: without some elements, or with other versions of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli.launch import Flag, Injected
from flows.cli.naming import check_names, give_names, pin

if TYPE_CHECKING:
    from store import Row

Message = Annotated[str, Parameter(name=["--message", "-m"])]
_SHOWN = 20


def retire(
    base: str,
    /,
    *elements: str,
    with_dependents: Annotated[bool, Flag] = False,
    head: str | None = None,
    tag: str | None = None,
    message: Message = "",
    session: Injected,
) -> None:
    """Pin a snapshot without some elements; earlier snapshots still hold them.

    Parameters
    ----------
    base
        The snapshot to start from: its id, at least eight digits of it, a tag or a head.
    elements
        Full names such as memory/numpy.sort, or globs such as 'memory/numpy.*'.
    with_dependents
        Leave out what requires them as well.
    head
        Move this head from the base to the new snapshot, or make it.
    tag
        Name the new snapshot, for good.
    message
        A line for the log.
    """
    from flows.errors import UsageError
    from store.selection import retire as without

    if not elements:
        raise UsageError("what is to be retired? Give names or globs: cellar snapshot retire BASE NAME...")
    store = session.open_store(by="snapshot retire")
    start = store.snapshot(base)
    parted = without(start.rows(), elements, with_dependents=with_dependents)
    refs = [row.ref for row in parted.kept]
    check_names(store, refs, tag=tag, head=head, base=start.id)
    gone = [*parted.named, *parted.dependents]
    pinned = pin(store, refs, message=message or f"Retire {_count(gone)} from {start.id[:12]}")
    given = give_names(store, pinned.snapshot.id, tag=tag, head=head, base=start.id)
    result = {
        "snapshot": pinned.snapshot.id,
        "base": start.id,
        "count": pinned.snapshot.count,
        "retired": [str(row.ref) for row in parted.named],
        "dependents": [str(row.ref) for row in parted.dependents],
        "tag": tag,
        "head": head,
        "new": pinned.new,
        "commit": pinned.commit,
    }
    lines = [*_first([f"- {row.name}" for row in gone]), pinned.line]
    session.emit(result, [*lines, *given])


def replace(
    base: str,
    /,
    *elements: str,
    head: str | None = None,
    tag: str | None = None,
    message: Message = "",
    session: Injected,
) -> None:
    """Pin a snapshot with some elements in other versions, or in addition, with what these require.

    Parameters
    ----------
    base
        The snapshot to start from: its id, at least eight digits of it, a tag or a head.
    elements
        Full names or globs (their newest versions), or exact name@version references.
    head
        Move this head from the base to the new snapshot, or make it.
    tag
        Name the new snapshot, for good.
    message
        A line for the log.
    """
    from flows.errors import UsageError
    from store.selection import choose, closure
    from store.selection import replace as with_others

    if not elements:
        raise UsageError("what is to be replaced? Give names: cellar snapshot replace BASE NAME...")
    store = session.open_store(by="snapshot replace")
    start, catalog = store.snapshot(base), store.catalog()
    made = with_others(start.rows(), closure(choose(catalog, elements), catalog.get_all))
    refs = [row.ref for row in made.rows]
    check_names(store, refs, tag=tag, head=head, base=start.id)
    changed = [*made.added, *(row for _, row in made.replaced)]
    pinned = pin(store, refs, message=message or f"Replace {_count(changed)} in {start.id[:12]}")
    given = give_names(store, pinned.snapshot.id, tag=tag, head=head, base=start.id)
    result = {
        "snapshot": pinned.snapshot.id,
        "base": start.id,
        "count": pinned.snapshot.count,
        "added": [str(row.ref) for row in made.added],
        "replaced": [{"before": str(old.ref), "after": str(new.ref)} for old, new in made.replaced],
        "tag": tag,
        "head": head,
        "new": pinned.new,
        "commit": pinned.commit,
    }
    listed = [f"+ {row.name} {row.version[:12]}" for row in made.added]
    listed += [f"~ {new.name} {old.version[:12]} -> {new.version[:12]}" for old, new in made.replaced]
    lines = [*_first(listed), pinned.line]
    session.emit(result, [*lines, *given])


def _count(rows: "Sequence[Row]") -> str:
    return rows[0].name if len(rows) == 1 else f"{len(rows):,} elements"


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"... {more:,} more; --json lists them"] if more > 0 else lines
