"""Shadows one on another: a host that has learned several domains, in the order in which it did."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from store import Ref, Store
from tasks.errors import BadStack
from tasks.shadows.attachment import attached
from tasks.shadows.foundation import check_foundations
from tasks.shadows.kept import is_stack, open_stack
from tasks.shadows.opening import KIND, find_shadow, open_shadow
from tasks.shadows.shadow import Shadow

if TYPE_CHECKING:
    from tasks.hosts import Host


_VERSION = re.compile(r"@[0-9a-f]{64}$")


def stack_refs(store: Store, names: Sequence[Ref | str], *, repeated: bool = False) -> tuple[Ref, ...]:
    """The shadows that names mean, in their order: the newest of a name, or all that head:NAME has attached.

    A reference, also written out (`shadow/docs@<version>`), means that version. Raises `ElementNotFound`
    where one is missing, `BadStack` as `check_foundations` and where one comes twice, since it would be added
    twice, and as `open_stack`. Neither is looked at where names are to be put on top of others and may be
    `repeated`.
    """
    refs: list[Ref] = []
    for name in names:
        if isinstance(name, str) and is_stack(name):
            refs += open_stack(store, name).stack.shadows
        elif isinstance(name, str) and _VERSION.search(name):  # a name itself may hold an @
            refs.append(find_shadow(store, Ref.parse(f"{KIND}{name.removeprefix(KIND)}")))
        else:
            refs.append(find_shadow(store, name))
    if repeated:
        return tuple(refs)
    if len(set(refs)) < len(refs):
        twice = next(ref for ref in refs if refs.count(ref) > 1)
        raise BadStack(f"{twice.name} is named twice, and would be added twice; name it once")
    check_foundations(store, refs)
    return tuple(refs)


@contextmanager
def standing_on(store: Store, host: "Host", refs: Sequence[Ref]) -> Iterator[tuple[Shadow, ...]]:
    """All of these shadows at work on the host inside the block, the first one innermost."""
    with ExitStack() as stack:
        opened = tuple(open_shadow(store, ref, host)[1] for ref in refs)
        for shadow in opened:
            stack.enter_context(attached(host, shadow))
        yield opened
