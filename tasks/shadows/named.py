"""Which shadows names mean: looked up in the catalog alone, so that what is missing is said at once."""

import re
from collections.abc import Sequence

from store import Ref, Store
from tasks.errors import BadStack
from tasks.finding import find_row
from tasks.shadows.foundation import check_foundations
from tasks.shadows.kept import is_stack, open_stack
from tasks.shadows.together import check_different

KIND = "shadow/"
_VERSION = re.compile(r"@[0-9a-f]{64}$")


def find_shadow(store: Store, what: Ref | str) -> Ref:
    """A shadow by reference or by name (the newest); raises `ElementNotFound` when the store has none."""
    return find_row(store, what, "shadow", remedy="write one with `cellar anneal write`").ref


def stack_refs(store: Store, names: Sequence[Ref | str], *, repeated: bool = False) -> tuple[Ref, ...]:
    """The shadows that names mean, in their order: the newest of a name, or all that head:NAME has attached.

    A reference, also written out (`shadow/docs@<version>`), means that version. Raises `ElementNotFound`
    where one is missing, `BadStack` where one comes twice, or two of one text as `check_different` says,
    since it would be added twice, and as `check_foundations` and `open_stack`. With `repeated` that is left
    to who puts them on others.
    """
    refs: list[Ref] = []
    for name in names:
        if isinstance(name, str) and is_stack(name):
            refs += open_stack(store, name).stack.shadows
        elif isinstance(name, str) and _VERSION.search(name):  # a name itself may hold an @
            refs.append(find_shadow(store, Ref.parse(f"{KIND}{name.removeprefix(KIND)}")))
        else:
            refs.append(find_shadow(store, name))
    if not repeated:
        if len(set(refs)) < len(refs):
            twice = next(ref for ref in refs if refs.count(ref) > 1)
            raise BadStack(f"{twice.name} is named twice, and would be added twice; name it once")
        check_different(store, refs)
        check_foundations(store, refs)
    return tuple(refs)
