"""What is attached to a host and stays so: a stack of shadows, pinned in a snapshot that a head names.

`stack/<head>` lists a host and shadows in their order. The snapshot holds it with everything that it
requires: what is attached is kept from collection, goes back as heads do, and moves to other stores as
snapshots do. Order matters in the last bit, since every sum is rounded.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from store import Element, Ref, Store, canonical_json
from store.errors import CellarError, ElementNotFound, IntegrityError, NotFoundError
from tasks.errors import BadPayload, BadStack, UnfitHost
from tasks.shadows.foundation import check_foundations, required
from tasks.shadows.together import check_different, host_of

FORMAT = 1
STACK = "stack"
MOST_SHADOWS = 64
_MOST_BYTES = 256 * 1024
_SPECS = ("head:", "tag:")
_MEDIA = "application/json"


@dataclass(frozen=True)
class Stack:
    """A host and the shadows on it, the first one innermost."""

    host: Ref
    shadows: tuple[Ref, ...] = ()

    def to_bytes(self) -> bytes:
        """Canonical JSON, the payload of its element."""
        record = {"format": FORMAT, "host": str(self.host), "shadows": [str(ref) for ref in self.shadows]}
        return canonical_json(record)


@dataclass(frozen=True)
class KeptStack:
    """A stack with the snapshot that pins it."""

    snapshot: str
    stack: Stack


def is_stack(name: str) -> bool:
    """Whether a name means what is attached at a head or a tag, e.g. head:reader."""
    return name.startswith(_SPECS)


def load_stack(payload: bytes) -> Stack:
    """The stack behind a payload; raises `BadPayload` when it is none."""
    try:
        if len(payload) > _MOST_BYTES:
            raise ValueError(f"{len(payload):,} bytes")
        record = json.loads(payload)
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']!r}, not {FORMAT}")
        if not isinstance(record["shadows"], list) or len(record["shadows"]) > MOST_SHADOWS:
            raise ValueError("its shadows are no list of up to 64")
        stack = Stack(Ref.parse(record["host"]), tuple(Ref.parse(text) for text in record["shadows"]))
        kinds = {ref.kind for ref in stack.shadows}
        if stack.host.kind != "host" or kinds - {"shadow"} or len(set(stack.shadows)) < len(stack.shadows):
            raise ValueError("it names other things than a host and different shadows")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, CellarError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadPayload(f"the payload is no stack of shadows ({reason}); attach them again") from error
    return stack


def open_stack(store: Store, spec: str) -> KeptStack:
    """What is attached at a head or a tag; raises `SnapshotNotFound`, and `BadStack` where it holds none."""
    snapshot = store.snapshot(spec)
    if snapshot.kinds.get(STACK) != 1:
        raise BadStack(
            f"{spec} names snapshot {snapshot.id[:12]}, which holds no stack of shadows; choose a head that "
            "`cellar anneal attach` made, or a new one"
        )
    return KeptStack(snapshot.id, load_stack(snapshot.read(snapshot.one(STACK))))


def stacks(store: Store, *, damaged: Callable[[str, CellarError], None] | None = None) -> dict[str, Stack]:
    """What is attached at every head that names a stack, by head.

    A head whose snapshot or stack cannot be read raises as it does for itself, unless `damaged` is there to
    be told its name and the error: then it is left out.
    """
    found = {}
    listed = store.heads(damaged=None if damaged is None else partial(damaged, "a head"))
    for head in sorted(listed):
        try:
            snapshot = store.snapshot(f"head:{head}")
            if snapshot.kinds.get(STACK) == 1:
                found[head] = load_stack(snapshot.read(snapshot.one(STACK)))
        except (IntegrityError, NotFoundError) as error:
            if damaged is None:
                raise
            damaged(f"head:{head}", error)
    return found


def attach_shadows(store: Store, head: str, refs: Sequence[Ref]) -> KeptStack:
    """Put shadows on top of what is attached at a head, which is made where there is none.

    One that is attached already stays where it is, in the version that is given now. The head moves by
    compare-and-swap; nothing of the host is read. Raises `UnfitHost` for shadows of different hosts,
    `BadStack` for a head that names something else, for none or too many shadows, for two that were made of
    one written shadow, for one whose foundation would not lie below it and for a set that cannot be pinned,
    and `HeadMoved`. Nothing is published then.
    """
    before = None if store.head(head) is None else open_stack(store, f"head:{head}")
    if not refs:
        raise BadStack("there is nothing to attach; name shadows that `cellar anneal show` lists")
    hosts = {ref: host_of(store, ref) for ref in refs}
    present = Stack(min(hosts.values())) if before is None else before.stack
    for ref, host in hosts.items():
        if host != present.host:
            raise UnfitHost(
                f"{ref.name} belongs to {host}, the others to {present.host}; attach shadows of one host"
            )
    names = {ref.name: ref for ref in refs}
    shadows = [names.pop(ref.name, ref) for ref in present.shadows]
    shadows += names.values()
    check_different(store, shadows)
    return _keep(
        store,
        head,
        before,
        replace(present, shadows=tuple(shadows)),
        action="attach",
        why=f"attach {', '.join(ref.name.partition('/')[2] for ref in refs)}",
    )


def detach_shadows(store: Store, head: str, names: Sequence[str] | None) -> KeptStack:
    """Take shadows off what is attached at a head, all of them without `names`; an empty stack stays.

    Raises `ElementNotFound` for one that is not attached, and as `attach_shadows`.
    """
    before = open_stack(store, f"head:{head}")
    attached = [ref.name for ref in before.stack.shadows]
    off = attached if names is None else [f"shadow/{name.removeprefix('shadow/')}" for name in names]
    if missing := [name for name in off if name not in attached]:
        there = ", ".join(attached) or "nothing"
        raise ElementNotFound(f"{missing[0]} is not attached at head {head}; attached there: {there}")
    shadows = tuple(ref for ref in before.stack.shadows if ref.name not in off)
    why = f"detach {', '.join(name.partition('/')[2] for name in off)}"
    return _keep(store, head, before, replace(before.stack, shadows=shadows), action="detach", why=why)


def _keep(
    store: Store, head: str, before: KeptStack | None, stack: Stack, *, action: str, why: str
) -> KeptStack:
    """Publish a stack, pin it with all that it requires, and move the head there; nothing of one that cannot.

    Raises `BadStack` as `check_foundations` and `required` do.
    """
    if len(stack.shadows) > MOST_SHADOWS:
        raise BadStack(
            f"{len(stack.shadows)} shadows are more than the {MOST_SHADOWS} of a stack; detach some"
        )
    check_foundations(store, stack.shadows)
    rows = required(store, [stack.host, *stack.shadows])
    element = Element(
        STACK,
        head,
        stack.to_bytes(),
        media=_MEDIA,
        requires=(stack.host.version, *(ref.version for ref in stack.shadows)),
    )
    [ref] = store.publish([element], message=f"Stack of {len(stack.shadows)} shadows at {head}")
    pinned = store.pin([ref, *(row.ref for row in rows)], message=f"{why} at {head}")
    expect = None if before is None else before.snapshot
    store.move_head(head, pinned.id, expect=expect, action=action, why=why[:400])
    return KeptStack(pinned.id, stack)
