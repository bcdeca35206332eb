"""Commands on heads: names of snapshots that move, each step by compare-and-swap, and back again."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from cyclopts import App

from flows.cli.launch import Injected
from flows.formatting import columns

if TYPE_CHECKING:
    from store import Store

app = App(name="head", help="Movable names of snapshots; each remembers where it pointed before.")


@app.default
def ls(*, session: Injected) -> None:
    """List heads with the snapshots that they point to."""
    heads = session.open_store().heads(damaged=session.warn)
    session.emit(heads, columns(sorted(heads.items())) or ["no head yet"])


@app.command
def move(name: str, snapshot: str, /, *, expect: str | None = None, why: str = "", session: Injected) -> None:
    """Move a head, or make it, unless somebody else moves it at the same time.

    Parameters
    ----------
    name
        The head.
    snapshot
        Where it goes: a snapshot's id, at least eight digits of it, a tag or another head.
    expect
        Only if it points to this snapshot now, or 'none': only if there is no such head yet. Otherwise the
        present place is read, shown and moved from.
    why
        A line for the head's log.
    """
    from store.positions import MOVE
    from store.refs import resolve

    store = session.open_store(by="head move")
    target = store.snapshot(snapshot).id
    if expect is None:
        before = store.head(name)
    else:
        before = None if expect == "none" else resolve(store.backend, expect)
    _move(session, store, name, before, target, action=MOVE, why=why)


@app.command
def log(name: str, /, *, session: Injected) -> None:
    """List where a head pointed, newest first, and who moved it there and why.

    Parameters
    ----------
    name
        The head.
    """
    positions = session.open_store().head_log(name)[::-1]
    found = [
        {"snapshot": position.snapshot, "time": position.time, **asdict(position.note)}
        for position in positions
    ]
    names = ("snapshot", "time", "action", "by", "why")
    rows = [tuple(" ".join(entry[name].split()) for name in names) for entry in found]
    session.emit(found, columns(rows, ("snapshot", "since", *names[2:])))


@app.command
def rollback(name: str, /, *, to: str | None = None, why: str = "", session: Injected) -> None:
    """Move a head back to where it pointed before it came to the present snapshot.

    Parameters
    ----------
    name
        The head.
    to
        Back to this snapshot instead, where the head has been: its id, at least eight digits of it, or a tag.
    why
        A line for the head's log.
    """
    from store.errors import SnapshotNotFound
    from store.positions import ROLLBACK, snapshot_before
    from store.refs import resolve

    store = session.open_store(by="head rollback")
    positions = store.head_log(name)
    target = snapshot_before(positions, name) if to is None else resolve(store.backend, to)
    if target not in {position.snapshot for position in positions}:
        raise SnapshotNotFound(
            f"head {name} is not known to have pointed to {target[:12]}; `cellar head log {name}` shows "
            f"where it was, and `cellar head move {name}` takes it anywhere"
        )
    _move(session, store, name, positions[-1].snapshot, target, action=ROLLBACK, why=why)


def _move(
    session: Injected,
    store: "Store",
    name: str,
    before: str | None,
    target: str,
    *,
    action: str,
    why: str,
) -> None:
    store.move_head(name, target, expect=before, action=action, why=why)
    result = {"head": name, "before": before, "snapshot": target}
    session.emit(result, [f"head {name}: {before or 'new'} -> {target}"])
