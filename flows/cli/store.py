"""Commands on a whole store: make one, verify it."""

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


def verify(full: Annotated[bool, Flag] = False, *, session: Injected) -> None:
    """Check that everything the log names is there and intact; exit code 5 where it is not.

    Parameters
    ----------
    full
        Read and check every stored byte, not only the structure and sizes.
    """
    from store.errors import IntegrityError

    store = session.open_store()
    with session.progress("verify", "objects") as progress:
        report = store.verify(full=full, progress=progress)
    checked = f"{report.objects:,} objects, {report.commits:,} commits, {report.elements:,} elements"
    depth = (
        f"every byte ({report.bytes_read:,} read)" if full else "structure and sizes; --full reads every byte"
    )
    session.emit(
        report.to_dict(),
        [f"{store.url}: {checked}; {depth}", *(f"{f.key}: {f.problem}" for f in report.findings)],
    )
    if not report.ok:
        raise IntegrityError(
            f"{len(report.findings)} damaged or missing objects in {store.url}; "
            "restore them from a copy of the store, or run the builds that wrote them again"
        )
