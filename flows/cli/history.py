"""Commands on history: the commits of a store, and what differs between two snapshots."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.cli.launch import Injected
from flows.formatting import columns

if TYPE_CHECKING:
    from store.diff import Change, Entry, Totals

_SIGNS = {"added": "+", "removed": "-", "replaced": "~"}


def log(
    limit: Annotated[int, Parameter(name=["--limit", "-n"], validator=Number(gte=0))] = 20,
    *,
    action: str | None = None,
    since: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    session: Injected,
) -> None:
    """List commits, newest first.

    Parameters
    ----------
    limit
        Show this many; 0 shows all.
    action
        Only commits of this kind, e.g. publish or pin.
    since
        Only what was committed after commit number SINCE.
    """
    from flows.errors import UsageError
    from store.log import ACTIONS

    if action is not None and action not in ACTIONS:
        raise UsageError(f"no commit has the action {action!r}; actions are {', '.join(sorted(ACTIONS))}")
    store = session.open_store()
    found = [commit for commit in store.log() if commit.sequence > since and action in (None, commit.action)][
        ::-1
    ]
    shown = found[:limit] if limit else found
    rows = [(c.sequence, c.time, c.action, c.elements, c.bytes, " ".join(c.message.split())) for c in shown]
    head = ("commit", "time", "action", "elements", "bytes", "message")
    lines = columns(rows, head) or ["no such commit" if since or action else "no commit yet"]
    if len(shown) < len(found):
        lines.append(f"... {len(found) - len(shown):,} more; --limit 0 shows all")
    session.emit([asdict(commit) for commit in shown], lines)


def diff(
    before: str,
    after: str,
    /,
    *,
    kind: str | None = None,
    name: str | None = None,
    session: Injected,
) -> None:
    """Show what the second of two snapshots adds, leaves out, and holds in another version.

    Parameters
    ----------
    before
        A snapshot: its id, at least eight digits of it, a tag or a head.
    after
        The snapshot to compare with it.
    kind
        Only elements of this kind: memory, codec, index, ...
    name
        Only elements whose full name matches this glob, e.g. 'memory/numpy.*'.
    """
    from store.diff import Totals, compare, entries_of

    store = session.open_store()
    one, two = store.snapshot(before), store.snapshot(after)
    found: dict[str, list[Change]] = {"added": [], "removed": [], "replaced": []}
    totals = Totals()
    with session.progress("diff", "elements") as progress:
        counted = _Counted(one.count + two.count, progress)
        sides = (counted(entries_of(one)), counted(entries_of(two))) if one.id != two.id else ((), ())
        for change in compare(*sides):
            of_kind = kind is None or change.name.startswith(f"{kind}/")
            if of_kind and (name is None or fnmatchcase(change.name, name)):
                found[change.what].append(change)
                totals.count(change)
    result = {
        "before": one.id,
        "after": two.id,
        **{what: [change.to_dict() for change in changes] for what, changes in found.items()},
        "totals": asdict(totals),
    }
    session.emit(result, _lines(found, totals))


class _Counted:
    """Counts the entries of both sides as they are read."""

    def __init__(self, total: int, progress: Any) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def __call__(self, entries: "Iterable[Entry]") -> "Iterator[Entry]":
        for entry in entries:
            self._done += 1
            self._progress(self._done, self._total)
            yield entry


def _lines(found: "dict[str, list[Change]]", totals: "Totals") -> Iterator[str]:
    changes = sorted((change for some in found.values() for change in some), key=lambda change: change.name)
    yield from columns([(_SIGNS[change.what], change.name, *_sides(change)) for change in changes])
    counts = ", ".join(f"{tally['elements']:,} {what}" for what, tally in asdict(totals).items())
    difference = sum(tally["bytes_after"] - tally["bytes_before"] for tally in asdict(totals).values())
    yield f"{counts}; {difference:+,} bytes" if changes else "no difference"


def _sides(change: "Change") -> tuple[str, str]:
    """Version and size; both of each where they differ."""
    entries = [entry for entry in (change.before, change.after) if entry is not None]
    return (
        " -> ".join(entry.version[:12] for entry in entries),
        " -> ".join(f"{entry.bytes:,}" for entry in entries),
    )
