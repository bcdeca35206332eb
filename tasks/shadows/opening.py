"""Shadows of a store by reference or name, for the host that they belong to."""

from typing import TYPE_CHECKING

from store import Ref, Store
from store.errors import ElementNotFound
from tasks.errors import BadPayload
from tasks.shadows.shadow import Shadow, load_shadow, most_bytes

if TYPE_CHECKING:
    from tasks.hosts import Host

KIND = "shadow/"


def find_shadow(store: Store, what: Ref | str) -> Ref:
    """A shadow by reference or by name (the newest); raises `ElementNotFound` when the store has none."""
    catalog = store.catalog()
    name = what.name if isinstance(what, Ref) else f"{KIND}{what.removeprefix(KIND)}"
    row = catalog.get(what.version) if isinstance(what, Ref) else catalog.latest(name)
    if row is None or row.ref.name != name or row.ref.kind != "shadow":
        raise ElementNotFound(f"{store.url} has no {name}; write one with `cellar anneal write`")
    return row.ref


def open_shadow(store: Store, what: Ref | str, host: "Host") -> tuple[Ref, Shadow]:
    """A shadow of this host; raises `ElementNotFound`, and `BadPayload` when it is none or another host's."""
    ref = find_shadow(store, what)
    row = store.catalog().get(ref.version)
    assert row is not None, "it was found a moment ago"
    if row.length > most_bytes(host):
        raise BadPayload(f"{ref} has {row.length:,} bytes, a shadow of {host.ref.name} {most_bytes(host):,}")
    return ref, load_shadow(store.read(row), host)
