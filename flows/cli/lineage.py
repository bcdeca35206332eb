"""The command that tells what something was made from, and what was made with it."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.cli.launch import Flag, Injected

if TYPE_CHECKING:
    from store import Row, Snapshot, Store


def lineage(
    what: str,
    /,
    *,
    up: Annotated[bool, Flag] = False,
    down: Annotated[bool, Flag] = False,
    depth: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    session: Injected,
) -> None:
    """Show what an element or a snapshot was made from, and what was made with it.

    Everything is read from the store's own records: documents with their digests, parameters, settings, who
    ran what with which code.

    Parameters
    ----------
    what
        An element such as memory/numpy.sort (its newest version) or name@version, or a snapshot: its id, at
        least eight digits of it, a tag or a head.
    up
        Only what it was made from.
    down
        Only what was made with it.
    depth
        So many steps in each direction; all of them when left out.
    """
    from flows.lineage import element_lineage, snapshot_lineage, tree_lines

    store = session.open_store()
    both = up == down
    if "/" in what:
        row = _element(store, what)
        with session.progress("lineage", "records") as progress:
            found = element_lineage(
                store, row, up=up or both, down=down or both, depth=depth, progress=progress
            )
    else:
        found = snapshot_lineage(store, _snapshot(store, what), up=up or both, down=down or both, depth=depth)
    session.emit(found, tree_lines(found))


def _snapshot(store: "Store", what: str) -> "Snapshot":
    """The snapshot that is meant; where there is none, perhaps an element was."""
    from store.errors import SnapshotNotFound

    try:
        return store.snapshot(what)
    except SnapshotNotFound as error:
        raise SnapshotNotFound(f"{error}; an element is given with its kind, as in memory/{what}") from error


def _element(store: "Store", what: str) -> "Row":
    """The row that a name or a reference means; a glob means no single element."""
    from store.errors import InputError
    from store.selection import choose

    rows = choose(store.catalog(), [what])
    if len(rows) > 1:
        raise InputError(f"{what} means {len(rows):,} elements; name one, such as {rows[0].name}")
    return rows[0]
