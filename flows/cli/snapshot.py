"""Commands on snapshots: pin an exact set of versions, list and show what was pinned."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from flows.cli.launch import Injected, ParamsFile, Set, run_stage
from flows.cli.session import columns

if TYPE_CHECKING:
    from store import Catalog, Ref, Row, Store

app = App(name="snapshot", help="Exact, reproducible sets of element versions.")


@app.command
def ls(*, session: Injected) -> None:
    """List snapshots in the order in which they were pinned, with their tags and heads."""
    store = session.open_store()
    names: dict[str, list[str]] = {}
    for name, identity in [*store.tags().items(), *((f"head:{n}", i) for n, i in store.heads().items())]:
        names.setdefault(identity, []).append(name)
    pins = {commit.snapshot: commit for commit in store.log() if commit.snapshot}
    found: list[dict[str, Any]] = [
        {
            "snapshot": identity,
            "elements": store.snapshot(identity).count,
            "time": commit.time,
            "names": sorted(names.get(identity, [])),
            "message": commit.message,
        }
        for identity, commit in pins.items()
    ]
    rows = [(f["snapshot"], f["elements"], f["time"], ", ".join(f["names"]), f["message"]) for f in found]
    head = ("snapshot", "elements", "time", "names", "message")
    session.emit(found, columns(rows, head) or ["no snapshot yet"])


@app.command
def show(snapshot: str, /, *, kind: str | None = None, session: Injected) -> None:
    """Show what a snapshot holds.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    kind
        List the elements of this kind only: memory, codec, index, ...
    """
    store = session.open_store()
    opened = store.snapshot(snapshot)
    rows = opened.rows(kind)
    listed = [
        {"name": row.name, "version": row.version, "bytes": row.length, "requires": list(row.requires)}
        for row in rows
    ]
    result = {"snapshot": opened.id, "count": opened.count, "kinds": opened.kinds, "elements": listed}
    figures = [(row.name, row.version[:12], row.length) for row in rows]
    table = columns(figures, ("element", "version", "bytes"))
    kinds = ", ".join(f"{count:,} {name}" for name, count in opened.kinds.items())
    session.emit(result, [f"snapshot {opened.id}", f"{opened.count:,} elements: {kinds}", "", *table])


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
        from flows.pin_snapshot import pin_snapshot

        run_stage(session, params, set_, pin_snapshot, "memory", "indexes")
        return
    store = session.open_store()
    refs = _with_requirements(store.catalog(), _chosen(store, elements))
    pinned = store.pin(refs, message=message or f"Pin {', '.join(elements)}")
    if tag is not None:
        store.tag(tag, pinned.id)
    named = f", named {tag}" if tag else ""
    session.emit(
        {"snapshot": pinned.id, "count": pinned.count, "kinds": pinned.kinds, "tag": tag},
        [f"pinned {pinned.count:,} elements as snapshot {pinned.id}{named}"],
    )


def _chosen(store: "Store", elements: Sequence[str]) -> list["Row"]:
    """The rows that names, patterns and exact references stand for; each must stand for at least one."""
    from store import Ref
    from store.errors import ElementNotFound

    catalog = store.catalog()
    newest = {row.name: row for row in catalog.rows()}
    chosen: list[Row] = []
    for text in elements:
        exact = "@" in text and len(text.rpartition("@")[2]) == 64
        if exact:
            row = catalog.get(Ref.parse(text).version)
            found = [row] if row is not None and str(row.ref) == text else []
        elif text in newest:
            found = [newest[text]]
        else:
            found = [row for name, row in newest.items() if fnmatchcase(name, text)]
        if not found:
            raise ElementNotFound(
                f"no element is called {text} in {store.url}; `cellar log` says what was published"
            )
        chosen += found
    return chosen


def _with_requirements(catalog: "Catalog", rows: Iterable["Row"]) -> list["Ref"]:
    """References to the rows and, step by step, to what they require; what is missing the store will name."""
    pending, refs = list(rows), {}
    while pending:
        row = pending.pop()
        if row.version not in refs:
            refs[row.version] = row.ref
            pending += catalog.get_all(row.requires).values()
    return list(refs.values())
