"""Commands on names of snapshots: tags, which never move."""

from typing import Annotated

from cyclopts import Parameter

from flows.cli.session import Session
from flows.formatting import columns

Injected = Annotated[Session, Parameter(parse=False)]


def tag(name: str | None = None, snapshot: str | None = None, /, *, session: Injected) -> None:
    """Give a snapshot a name for good, or list the names without arguments.

    Parameters
    ----------
    name
        The new tag.
    snapshot
        Which snapshot: its id, at least eight digits of it, or another tag or head.
    """
    from flows.errors import UsageError

    store = session.open_store(by="tag")
    if name is None:
        tags = store.tags(damaged=session.warn)
        session.emit(tags, columns(sorted(tags.items())) or ["no tag yet"])
        return
    if snapshot is None:
        raise UsageError(f"which snapshot is {name!r} to name? Give its id: cellar tag {name} SNAPSHOT")
    identity = store.snapshot(snapshot).id
    store.tag(name, identity)
    session.emit({"tag": name, "snapshot": identity}, [f"{name} now names snapshot {identity}"])
