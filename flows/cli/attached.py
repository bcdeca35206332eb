"""Commands on what is attached to a host: kept at a head, taken off, listed, and tried on a text."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flows.cli.anneal_needs import need_shadows
from flows.cli.given_text import given_text
from flows.cli.launch import Flag, Injected, ParamsFile, Set
from flows.cli.shadow_lines import checked, shadow_in_short, shadow_lines, shadow_record, shadow_row
from flows.formatting import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from store import Row, Store
    from store.errors import CellarError
    from tasks.shadows import KeptStack, Stack

To = Annotated[str, Parameter(name="--to")]
From = Annotated[str, Parameter(name="--from")]
All = Annotated[bool, Parameter(name="--all"), Flag]


def attach(*names: str, to: To, session: Injected) -> None:
    """Attach shadows at a head, on top of what is attached there; the host's weights are never touched.

    The head is made where there is none, and names a snapshot of host and shadows. Other commands take
    head:NAME for all that is attached there. One that is attached already is brought to its newest version.

    Parameters
    ----------
    names
        Which shadows, e.g. domain; several are attached in order, head:NAME means those of another head.
    to
        The head, e.g. reader.
    """
    from flows.errors import UsageError
    from tasks.shadows import attach_shadows, stack_refs

    if not names:
        raise UsageError("which shadows? For example: cellar anneal attach domain --to reader")
    store = session.open_store(by="anneal attach")
    _told(session, to, attach_shadows(store, to, stack_refs(store, names, repeated=True)))


def detach(*names: str, from_: From, all_: All = False, session: Injected) -> None:
    """Detach shadows from a head; without any left the host computes as it does alone, bit for bit.

    What was attached before stays in the head's log: `cellar head rollback` brings it back.

    Parameters
    ----------
    names
        Which shadows.
    from_
        The head.
    all_
        All that are attached there.
    """
    from flows.errors import UsageError
    from tasks.shadows import detach_shadows

    if bool(names) == all_:
        raise UsageError("name the shadows to detach, or give --all")
    store = session.open_store(by="anneal detach")
    _told(session, from_, detach_shadows(store, from_, None if all_ else names))


def show(name: str | None = None, /, *, session: Injected) -> None:
    """List the shadows of the store and what is attached at its heads, or show one of them.

    What cannot be read is named at the end, with exit code 5; the others are listed.

    Parameters
    ----------
    name
        Which one, e.g. domain or domain.written; or head:NAME for what is attached there.
    """
    from store.errors import CellarError
    from tasks.errors import BadPayload
    from tasks.shadows import find_shadow, is_stack, open_stack, stacks

    store = session.open_store()
    if name is not None and is_stack(name):
        kept = open_stack(store, name)
        session.emit(_stack_record(name, kept.stack), _stack_lines(store, name, kept.stack))
        return
    if name is not None:
        row = shadow_row(store, str(find_shadow(store, name)))
        session.emit(shadow_record(row), shadow_lines(row))
        return
    faults: list[str] = []

    def left_out(what: str, error: CellarError) -> None:
        faults.append(f"{what} is left out, since {error}")

    newest = {row.ref.name: row for row in store.catalog().rows("shadow")}
    rows = [row for _, row in sorted(newest.items()) if _told_of(row, left_out)]
    shown = [(row.ref.name, row.ref.version[:12], *shadow_in_short(row)) for row in rows]
    lines = columns(shown) if shown else ["no shadows"]
    records = []
    for head, stack in stacks(store, damaged=left_out).items():
        try:
            lines += ["", *_stack_lines(store, f"head:{head}", stack)]
        except BadPayload as error:
            left_out(f"head:{head}", error)
        else:
            records.append(_stack_record(f"head:{head}", stack))
    session.emit({"shadows": [shadow_record(row) for row in rows], "attached": records}, lines)
    for fault in faults[:-1]:
        session.warn(fault)
    if faults:
        raise BadPayload(faults[-1])


def continue_text(
    *names: str,
    text: str,
    tokens: int = 48,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Continue a text with shadows on the host and without; greedy, nothing is written.

    Parameters
    ----------
    names
        Which shadows, e.g. domain, or head:NAME; several are attached in order.
    text
        What is continued.
    tokens
        How far.
    """
    from flows.errors import UsageError
    from flows.hosts import open_host
    from flows.params import load_params
    from flows.watch import watching

    if not names or not text.strip() or not 0 < tokens <= 1_024:
        raise UsageError('name shadows, and give --text "..." and up to 1024 --tokens')
    text = given_text(text, "--text")
    chosen = load_params(params, set_ or ())
    store = session.open_store()
    host_at, refs = need_shadows(store, chosen, names)
    from tasks.anneal import before_and_after

    with watching(session.progress):
        host = open_host(session.settings, store, chosen.host, host_at)
        before, after = before_and_after(store, host, refs, text, tokens=tokens)
    made = {"shadows": [str(ref) for ref in refs], "text": text, "with": after, "without": before}
    told = (f"{name:<8} {' '.join(found.split())}" for name, found in (("with", after), ("without", before)))
    lines = [*(f"shadow   {ref}" for ref in refs), *told]
    session.emit(made, lines)


def _told(session: Injected, head: str, kept: "KeptStack") -> None:
    store = session.open_store()
    name = f"head:{head}"
    record = {"snapshot": kept.snapshot, **_stack_record(name, kept.stack)}
    session.emit(record, [*_stack_lines(store, name, kept.stack), f"snapshot {kept.snapshot}"])


def _told_of(row: "Row", left_out: "Callable[[str, CellarError], None]") -> bool:
    """Whether a shadow's record says what is listed; `left_out` is told where it does not."""
    from tasks.errors import BadPayload

    try:
        checked(row)
    except BadPayload as error:
        left_out(row.ref.name, error)
        return False
    return True


def _stack_record(name: str, stack: "Stack") -> dict[str, Any]:
    return {"at": name, "host": str(stack.host), "shadows": [str(ref) for ref in stack.shadows]}


def _stack_lines(store: "Store", name: str, stack: "Stack") -> list[str]:
    """A host and what is attached to it, in order."""
    rows = [shadow_row(store, str(ref)) for ref in stack.shadows]
    shown = [(f"  {row.ref.name}", row.ref.version[:12], *shadow_in_short(row)) for row in rows]
    return [
        f"{name} on {stack.host.name}@{stack.host.version[:12]}",
        *(columns(shown) or ["  nothing attached"]),
    ]
