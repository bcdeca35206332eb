"""What shadows stand on: those that the host had learned before, and all that a stack requires."""

from collections.abc import Sequence

from store import Ref, Row, Store
from store.errors import CellarError
from store.selection import closure
from tasks.errors import BadPayload, BadStack


def foundation(store: Store, ref: Ref) -> tuple[Ref, ...]:
    """What was on the host when a shadow was written, in order; raises `BadPayload` where that is no list."""
    row = store.catalog().get(ref.version)
    named = [] if row is None else row.provenance.get("onto", [])
    try:
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise ValueError("no list of references")
        return tuple(Ref.parse(name) for name in named)
    except (ValueError, CellarError) as error:
        raise BadPayload(f"{ref} does not say what it was written on; write it again") from error


def check_foundations(store: Store, shadows: Sequence[Ref]) -> None:
    """Raise `BadStack` where a shadow would not lie above all that it was written on, in those versions."""
    for place, ref in enumerate(shadows):
        below = iter(shadows[:place])
        for needed in foundation(store, ref):
            if needed not in below:  # which goes on after what it found: their order counts
                raise BadStack(
                    f"{ref.name} was written on {needed}, which would not lie below it in that version and "
                    "order; take both, in that order, or neither"
                )


def required(store: Store, refs: Sequence[Ref]) -> list[Row]:
    """The rows of some versions and of all that they require, step by step.

    Raises `BadStack` where the store lacks any, or they hold two versions of one name: neither can be pinned.
    """
    catalog = store.catalog()
    first = catalog.get_all(ref.version for ref in refs)
    rows = closure(first.values(), catalog.get_all)
    found = {row.version for row in rows}
    for ref in refs:
        if ref.version not in found:
            raise BadStack(f"{store.url} has no {ref}; write it again, or leave it off")
    names: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (row.name, row.commit, row.version)):
        if missing := sorted(set(row.requires) - found):
            raise BadStack(
                f"{row.ref} requires version {missing[0]}, which {store.url} does not have; write it again, "
                "or leave it off"
            )
        if (other := names.setdefault(row.name, row)) is not row:
            raise BadStack(
                f"{other.ref} and {row.ref} would both be needed, and a snapshot holds one version of a "
                "name; write what stands on the older one again"
            )
    return rows
