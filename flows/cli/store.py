"""The command that makes a store, and what commands on a whole store share."""

from typing import Annotated

from cyclopts import Parameter

from flows.cli.session import Session

Injected = Annotated[Session, Parameter(parse=False)]
Flag = Parameter(negative="")


def init(*, session: Injected) -> None:
    """Make an empty store; one that is already there stays as it is."""
    from store import Store
    from store.errors import StoreExists

    try:
        store, made = Store.create(session.settings.store), True
    except StoreExists:
        store, made = Store.open(session.settings.store), False
    verb = "made an empty store at" if made else "there is a store already at"
    session.emit({"store": store.url, "created": made}, [f"{verb} {store.url}"])
