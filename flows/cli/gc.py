"""The command that collects garbage: what would go, what waits and until when, and what to do next."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from flows.cli.launch import Flag, Injected
from flows.formatting import columns

if TYPE_CHECKING:
    from store.gc import Summary

_FEW, _DIGITS = 10, 12
_DEFAULTS = {"grace": timedelta(days=7), "retain": timedelta(days=30)}


def gc(
    *,
    apply: Annotated[bool, Flag] = False,
    grace: timedelta = _DEFAULTS["grace"],
    retain: timedelta = _DEFAULTS["retain"],
    session: Injected,
) -> None:
    """Remove what no tag, head, hold, running build or recent commit keeps; without --apply, only look.

    Takes two runs: one condemns, and one after the grace period removes what still nothing reaches.

    Parameters
    ----------
    apply
        Do it. Without this nothing is written.
    grace
        Time between condemning and removing, such as 7d, 36h or 90m; more than 24h.
    retain
        Keep whatever was published or pinned within this time; 0d keeps only what a name reaches.
    """
    from store.gc import collect

    store = session.open_store(by="gc")
    with session.progress("gc", "objects") as progress:
        summary = collect(store, apply=apply, grace=grace, retain=retain, progress=progress)
    follows = _next(summary, grace, retain)
    lines = [f"{summary.store}, kept by {_roots(summary)}", *columns(list(_rows(summary)), _HEAD)]
    lines += _listed(summary)
    lines += [f"{name} names a snapshot that was removed" for name in summary.dangling]
    session.emit({**summary.to_dict(), "next": follows}, [*lines, follows])


_HEAD = ("", "packs", "snapshots", "files", "bytes")
_SAID = {
    "kept": ("kept", "kept"),
    "finished": ("interrupted removal to finish", "finished an interrupted removal"),
    "leftovers": ("leftovers to remove", "leftovers removed"),
    "rescued": ("condemned, but reached again", "condemned, but reached again"),
    "collected": ("to remove", "removed"),
    "waiting": ("condemned, still waiting", "condemned, still waiting"),
    "queued": ("to condemn after that", "to condemn after that"),
    "condemned": ("to condemn", "condemned"),
}


def _rows(summary: "Summary") -> Iterator[tuple[Any, ...]]:
    for field, said in _SAID.items():
        amount = getattr(summary, field)
        if amount or field == "kept":
            yield said[summary.applied], amount.packs, amount.snapshots, amount.files, amount.bytes


def _listed(summary: "Summary") -> Iterator[str]:
    """The first snapshots that go or are to go: who sees them in time can still name one that is needed."""
    for field, ids in summary.snapshots.items():
        yield f"snapshots, {_SAID[field][summary.applied]}:"
        yield from (f"  {identity[:_DIGITS]}" for identity in ids[:_FEW])
        if len(ids) > _FEW:
            yield f"  ... {len(ids) - _FEW:,} more; --json lists them"


def _roots(summary: "Summary") -> str:
    counts = ((count, name.replace("_", " ")) for name, count in summary.roots.items())
    return ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for count, name in counts)


def _next(summary: "Summary", grace: timedelta, retain: timedelta) -> str:
    """What to do next, and when."""
    given = {"grace": grace, "retain": retain}
    options = "".join(
        f" --{name} {_duration(value)}" for name, value in given.items() if value != _DEFAULTS[name]
    )
    command = f"`cellar gc --apply{options}`"
    if not summary.applied and (
        summary.condemned or summary.collected or summary.finished or summary.leftovers
    ):
        later = f"; what it condemns may be removed from {summary.until} on" if summary.condemned else ""
        return f"nothing was changed: {command} does this{later}"
    if summary.until is None:
        return "nothing is left to remove"
    return f"next: {command} from {summary.until} on removes what is condemned and still not reached then"


def _duration(value: timedelta) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if value.total_seconds() % size == 0:
            return f"{value.total_seconds() / size:.0f}{unit}"
    return f"{value.total_seconds():.0f}s"
