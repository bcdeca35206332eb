"""Which shadows can be on one host together, by what their records say: nothing of a host is read."""

from collections.abc import Mapping, Sequence

from store import Ref, Row, Store
from store.errors import ElementNotFound
from tasks.errors import BadPayload, BadStack, UnfitHost
from tasks.shadows.foundation import foundation


def check_different(store: Store, refs: Sequence[Ref]) -> None:
    """Raise `BadStack` where what was written once would be added twice.

    That is so where two shadows were made from one written shadow, of which one is that shadow itself or both
    are consolidations of it, and where two are versions of one name, unless the one was written on the other.
    Raises `BadPayload` as `foundation`.
    """
    rows = store.catalog().get_all(ref.version for ref in refs)
    made: dict[str, Ref] = {}
    named: dict[str, list[Ref]] = {}
    for ref in refs:
        written = _written(ref, rows)
        if (other := made.setdefault(written, ref)) != ref:
            both = f"{_short(other)} and {_short(ref)} were both made from {_short(written)}"
            for one, source in ((ref, other), (other, ref)):
                if str(source) == written:
                    both = f"{_short(one)} was made from {_short(source)}"
            raise BadStack(f"{both}, which would be added twice; take one of them")
        named.setdefault(ref.name, []).append(ref)
    for same in named.values():
        for place, ref in enumerate(same):
            below = foundation(store, ref)  # that one lies above the other is said of their order
            others = [one for one in same[:place] if one not in below and ref not in foundation(store, one)]
            if others:
                raise BadStack(
                    f"{_short(others[0])} and {_short(ref)} are two versions of one shadow, which would be "
                    "added twice; take one of them"
                )


def check_written_on(store: Store, refs: Sequence[Ref], host: Ref) -> None:
    """Raise `UnfitHost` where a shadow was written on another host, or on another version of this one.

    Raises `ElementNotFound` and `BadPayload` as `host_of`.
    """
    for ref in refs:
        own = host_of(store, ref)
        if own != host:
            other = f"name its host with `--set host.name={own.name.partition('/')[2]}`, or "
            raise UnfitHost(
                f"{ref.name} belongs to {_short(own)}, and the host is {_short(host)}; "
                f"{'' if own.name == host.name else other}write it again on this one"
            )


def host_of(store: Store, ref: Ref) -> Ref:
    """The host that a shadow requires, as its record says.

    Raises `ElementNotFound` where the shadow is not there, `BadPayload` where it requires no host or several.
    """
    row = store.catalog().get(ref.version)
    if row is None or row.ref != ref:
        raise ElementNotFound(f"{store.url} has no {ref}; write it again, or leave it out")
    hosts = [one.ref for one in store.catalog().get_all(row.requires).values() if one.ref.kind == "host"]
    if len(hosts) != 1:
        raise BadPayload(f"{ref} requires {len(hosts)} hosts instead of one; write it again")
    return hosts[0]


def _written(ref: Ref, rows: Mapping[str, Row]) -> str:
    """The written shadow that a shadow was consolidated from, or itself."""
    row = rows.get(ref.version)
    written = None if row is None else row.provenance.get("written")
    return written if isinstance(written, str) else str(ref)


def _short(ref: Ref | str) -> str:
    name, _, version = str(ref)[:400].rpartition("@")
    return f"{name}@{version[:12]}"
