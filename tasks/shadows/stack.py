"""Shadows one on another: a host that has learned several domains, in the order in which it did."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from store import Ref, Store
from tasks.shadows.attachment import attached
from tasks.shadows.opening import open_shadow
from tasks.shadows.shadow import Shadow

if TYPE_CHECKING:
    from tasks.hosts import Host


@contextmanager
def standing_on(store: Store, host: "Host", refs: Sequence[Ref]) -> Iterator[tuple[Shadow, ...]]:
    """All of these shadows at work on the host inside the block, the first one innermost."""
    with ExitStack() as stack:
        opened = tuple(open_shadow(store, ref, host)[1] for ref in refs)
        for shadow in opened:
            stack.enter_context(attached(host, shadow))
        yield opened
