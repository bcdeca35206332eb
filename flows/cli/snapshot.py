"""Commands on snapshots: pin an exact set of versions, list and show what was pinned."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from flows.cli.contents import names_of, show
from flows.cli.launch import Injected, ParamsFile, Set, stage
from flows.formatting import columns

app = App(name="snapshot", help="Exact, reproducible sets of element versions.")


@app.command
def ls(*, session: Injected) -> None:
    """List snapshots in the order in which they were pinned, with their tags and heads."""
    store = session.open_store()
    names = names_of(session, store)
    found: list[dict[str, Any]] = [
        {
            "snapshot": pinned.id,
            "elements": pinned.elements,
            "bytes": pinned.bytes,
            "time": pinned.commit.time,
            "names": names.get(pinned.id, []),
            "message": pinned.commit.message,
        }
        for pinned in store.snapshots()
    ]
    rows = [
        (f["snapshot"], f["elements"], f["bytes"], f["time"], ", ".join(f["names"]), _line(f["message"]))
        for f in found
    ]
    head = ("snapshot", "elements", "bytes", "time", "names", "message")
    session.emit(found, columns(rows, head) or ["no snapshot yet"])


def _line(message: str) -> str:
    return " ".join(message.split())


app.command(show)


@app.command
def pin(
    *elements: str,
    message: Annotated[str, Parameter(name=["--message", "-m"])] = "",
    tag: str | None = None,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Pin an exact set of versions, with everything they require, as one snapshot.

    Without elements, pins the memories and indexes that were built last, and moves the corpus' head there.

    Parameters
    ----------
    elements
        Full names such as memory/numpy.sort, patterns such as 'memory/*', or exact name@version references.
    message
        A line for the log.
    tag
        Name the snapshot, for good.
    """
    if not elements:
        with stage(session, params, set_, "memory", "indexes") as run:
            from flows.pin_snapshot import pin_snapshot

            run(pin_snapshot)
        return
    from flows.cli.naming import pin as pin_set
    from store.selection import choose, closure

    store = session.open_store(by="snapshot pin")
    catalog = store.catalog()
    refs = [row.ref for row in closure(choose(catalog, elements), catalog.get_all)]
    made = pin_set(store, refs, message=message or f"Pin {', '.join(elements)}")
    pinned = made.snapshot
    if tag is not None:
        store.tag(tag, pinned.id)
    named = ", named" if made.new else "; now named"
    result = {"snapshot": pinned.id, "count": pinned.count, "kinds": pinned.kinds, "tag": tag}
    session.emit(
        {**result, "new": made.new, "commit": made.commit}, [made.line + (f"{named} {tag}" if tag else "")]
    )
