"""Commands on holds: what keeps a snapshot alive for a limited time while somebody works with it."""

from datetime import timedelta
from typing import Annotated

from cyclopts import App, Parameter

from flows.cli.launch import Flag, Injected
from flows.formatting import columns

app = App(name="hold", help="Snapshots that a run keeps alive for a limited time.")


@app.command
def ls(*, session: Injected) -> None:
    """List holds, those that no longer count too."""
    store = session.open_store()
    now = store.backend.now()
    found = [
        {
            "name": hold.name,
            "snapshot": hold.snapshot,
            "until": hold.expires.isoformat(timespec="seconds"),
            "expired": hold.expired(now),
            "owner": hold.owner,
        }
        for hold in store.holds()
    ]
    rows = [
        (f["name"], f["snapshot"], f"{f['until']}{' (over)' if f['expired'] else ''}", f["owner"])
        for f in found
    ]
    session.emit(found, columns(rows, ("hold", "snapshot", "until", "owner")) or ["no hold"])


@app.command
def add(
    name: str,
    snapshot: str,
    /,
    *,
    last: Annotated[timedelta, Parameter(name="--for")] = timedelta(days=1),
    session: Injected,
) -> None:
    """Keep a snapshot alive for a time, or renew a hold on it.

    Parameters
    ----------
    name
        The hold, usually the name of a run.
    snapshot
        Which snapshot: its id, at least eight digits of it, a tag or a head.
    last
        For how long from now, such as 12h or 7d; at most 366 days.
    """
    store = session.open_store(by="hold add")
    identity = store.snapshot(snapshot).id
    store.hold(name, identity, owner=session.owner, seconds=int(last.total_seconds())).take()
    [made] = [hold for hold in store.holds() if hold.name == name]
    until = made.expires.isoformat(timespec="seconds")
    result = {"name": name, "snapshot": identity, "until": until}
    session.emit(result, [f"{name} keeps snapshot {identity} until {until}"])


@app.command
def release(name: str | None = None, /, *, expired: Annotated[bool, Flag] = False, session: Injected) -> None:
    """Give up a hold, or all that no longer count.

    Parameters
    ----------
    name
        The hold.
    expired
        Every hold whose time is over, instead.
    """
    from flows.errors import UsageError

    if (name is None) == (not expired):
        raise UsageError("which hold is to be released? Give its name, or --expired for those that are over")
    store = session.open_store()
    now = store.backend.now()
    names = [name] if name is not None else [hold.name for hold in store.holds() if hold.expired(now)]
    for chosen in names:
        store.release_hold(chosen)
    session.emit(names, [f"released {chosen}" for chosen in names] or ["no hold is over"])
