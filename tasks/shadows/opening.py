"""Shadows of a store by reference or name, for the host that they belong to."""

from typing import TYPE_CHECKING

from store import Ref, Store
from tasks.errors import BadPayload
from tasks.shadows.named import find_shadow
from tasks.shadows.shadow import Shadow, load_shadow, most_bytes

if TYPE_CHECKING:
    from tasks.hosts import Host


def open_shadow(store: Store, what: Ref | str, host: "Host") -> tuple[Ref, Shadow]:
    """A shadow of this host; raises `ElementNotFound`, and `BadPayload` when it is none or another host's."""
    ref = find_shadow(store, what)
    row = store.catalog().get(ref.version)
    assert row is not None, "it was found a moment ago"
    if row.length > most_bytes(host):
        raise BadPayload(f"{ref} has {row.length:,} bytes, a shadow of {host.ref.name} {most_bytes(host):,}")
    return ref, load_shadow(store.read(row), host)
