"""Hosts that a store keeps the manifest of, found by name."""

from dataclasses import dataclass

from store import Ref, Store
from tasks.errors import UnknownHost
from tasks.hosts.manifest import HostManifest


@dataclass(frozen=True)
class KeptHost:
    """A host of the store: its reference, what it is, and where it came from."""

    ref: Ref
    manifest: HostManifest
    origin: str


def find_host(store: Store, name: str) -> KeptHost:
    """The newest host of that name; raises `UnknownHost` when there is none."""
    row = store.catalog().latest(f"host/{name}")
    if row is None:
        raise UnknownHost(
            f"{store.url} has no host {name}; `cellar host fetch` brings one that is known, and `cellar host "
            "add` takes any model directory or GGUF file"
        )
    return KeptHost(row.ref, HostManifest.from_bytes(store.read(row)), str(row.facts.get("origin", "")))


def list_hosts(store: Store) -> list[KeptHost]:
    """The newest version of every host of a store, by name."""
    newest = {row.ref.name: row for row in store.catalog().rows("host")}
    return [find_host(store, name.partition("/")[2]) for name in sorted(newest)]
