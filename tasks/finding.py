"""Elements of one kind in a store, by reference or by name: the same question in every room that has some."""

from store import Ref, Row, Store
from store.errors import ElementNotFound


def find_row(store: Store, what: Ref | str, kind: str, *, remedy: str) -> Row:
    """The row of an element of `kind`: a reference itself, or the newest of a name, which may have its kind.

    Raises `ElementNotFound`, with `remedy` as what to do next, where the store has none.
    """
    catalog, prefix = store.catalog(), f"{kind}/"
    name = what.name if isinstance(what, Ref) else f"{prefix}{what.removeprefix(prefix)}"
    row = catalog.get(what.version) if isinstance(what, Ref) else catalog.latest(name)
    if row is None or row.ref.name != name or row.ref.kind != kind:
        raise ElementNotFound(f"{store.url} has no {name}; {remedy}")
    return row
