"""The room's door to the store: slow states as elements `residual/<name>`, which require their host."""

from collections.abc import Mapping
from typing import Any

from store import Element, Ref, Row, Store
from tasks.errors import BadPayload
from tasks.finding import find_row
from tasks.larc.residual import MOST_BYTES, encode_residual, load_residual
from tasks.larc.state import SlowState

_KIND = "residual/"


def residual_element(
    name: str,
    slow: SlowState,
    *,
    host: Ref,
    provenance: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Element:
    """The element `residual/<name>` of a slow state, for whoever publishes it after a training.

    `provenance` (its `recipe` first of all) belongs to the version, `facts` stand beside it.
    """
    return Element(
        "residual",
        name.removeprefix(_KIND),
        encode_residual(slow, host.version),
        requires=(host.version,),
        provenance={"host": str(host), **(provenance or {})},
        facts={"rank": slow.rank, "insertion": slow.insertion, "updates": slow.version, **(facts or {})},
    )


def find_residual(store: Store, what: Ref | str) -> Row:
    """A slow state by reference or name (the newest); raises `ElementNotFound` when the store has none."""
    return find_row(store, what, "residual", remedy="train one with `cellar larc train`")


def open_residual(store: Store, what: Ref | str, *, host: Ref, width: int) -> tuple[Ref, SlowState]:
    """A slow state by reference or name (the newest), for the host of this version and hidden size.

    Raises `ElementNotFound` when the store has none, `BadPayload` when it is none, or another host's.
    """
    row = find_residual(store, what)
    if row.length > MOST_BYTES:
        raise BadPayload(f"{row.ref} has {row.length:,} bytes, a residual {MOST_BYTES:,} at most")
    return row.ref, load_residual(store.read(row), host=host.version, width=width)
