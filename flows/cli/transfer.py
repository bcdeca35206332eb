"""Commands that move snapshots: into another store, into an archive, out of one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.launch import Injected

if TYPE_CHECKING:
    from flows.cli.session import Session
    from store import Snapshot, Store
    from store.transfer import Choice, CopyReport
    from tasks.progress import Progress

Kinds = Annotated[list[str] | None, Parameter(name="--kind", negative="", consume_multiple=False)]
Names = Annotated[list[str] | None, Parameter(name="--name", negative="", consume_multiple=False)]
_MIB = 1024**2


def register(app: App) -> None:
    """Add these commands to the commands on snapshots."""
    app.command(copy)
    app.command(export)
    app.command(import_, name="import")


def copy(
    snapshot: str,
    /,
    *,
    to: str,
    kind: Kinds = None,
    name: Names = None,
    requirements: bool = True,
    tag: str | None = None,
    session: Injected,
) -> None:
    """Copy a snapshot, or a choice of its elements, into another store; what is there already is not sent.

    Every byte is checked on its way. A copy that was interrupted continues when it is run again. A whole
    snapshot keeps its id and its signatures; a choice becomes a snapshot of its own.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    to
        The other store: a folder, file:/path or s3://bucket/prefix; made if nothing is there.
    kind
        Take elements of this kind; may be given several times.
    name
        Take elements whose full name matches this glob, e.g. 'memory/numpy.*'; may be given several times.
    requirements
        Take what the chosen elements require as well; without it, an incomplete choice is refused.
    tag
        Name the snapshot there, for good.
    """
    from store import Store
    from store.transfer import copy_snapshot

    source = session.open_store()
    opened, choice = source.snapshot(snapshot), _choice(kind, name, requirements)
    choice.rows(opened)  # what cannot be copied makes no store
    destination = Store.open_or_create(to, run=session.record("snapshot copy"))
    with mebibytes(session, "copy") as progress:
        report = copy_snapshot(source, opened, destination, choice=choice, tag=tag, progress=progress)
    lines = [*_lines("copied", report, destination.url), *_no_head(snapshot, opened, destination, report)]
    session.emit(report.to_dict() | {"to": destination.url}, lines)


def export(
    snapshot: str,
    destination: Path,
    /,
    *,
    kind: Kinds = None,
    name: Names = None,
    requirements: bool = True,
    tag: str | None = None,
    session: Injected,
) -> None:
    """Write a snapshot, or a choice of its elements, to one tar file or folder that opens as a store.

    The same snapshot of the same store, with the same signatures and tag, always gives the same file, byte by
    byte.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    destination
        Where to write: a tar file if it ends in .tar, otherwise a folder; nothing may be there yet.
    kind
        Take elements of this kind; may be given several times.
    name
        Take elements whose full name matches this glob, e.g. 'memory/numpy.*'; may be given several times.
    requirements
        Take what the chosen elements require as well; without it, an incomplete choice is refused.
    tag
        Name the snapshot inside the export.
    """
    from flows.formatting import counted, size
    from store.transfer import export_snapshot

    source = session.open_store()
    opened, choice = source.snapshot(snapshot), _choice(kind, name, requirements)
    with mebibytes(session, "export") as progress:
        report = export_snapshot(source, opened, destination, choice=choice, tag=tag, progress=progress)
    lines = [
        f"exported {counted(report.elements, 'element')} as snapshot {report.snapshot}",
        f"{report.path}: packs: {report.packs:,} of {size(report.bytes)}; signatures: {report.signatures:,}",
    ]
    session.emit(report.to_dict(), [*lines, *([f"SHA-256 {report.digest}"] if report.digest else [])])


def import_(
    archive: str,
    /,
    *,
    tag: str | None = None,
    key: Annotated[list[Path] | None, Parameter(name="--key", negative="", consume_multiple=False)] = None,
    session: Injected,
) -> None:
    """Check an export to the last byte and copy its snapshot into the store; nothing of a bad one is taken.

    Parameters
    ----------
    archive
        A tar file or folder that `cellar snapshot export` made.
    tag
        Name the snapshot, for good; a name inside the export is not taken over.
    key
        Refuse an export that the holder of this public key has not signed; may be given several times.
    """
    from store.keys import read_public_key
    from store.transfer import check_archive, copy_snapshot

    keys = [read_public_key(path) for path in key or ()]
    with mebibytes(session, "check") as progress:
        source, found = check_archive(archive, keys=keys, progress=progress)
    destination = session.open_or_create_store(by="snapshot import")
    with mebibytes(session, "import") as progress:
        opened = source.snapshot(found.snapshot)
        report = copy_snapshot(source, opened, destination, tag=tag, progress=progress)
    lines = [*_lines("imported", report, destination.url), *_no_head("", opened, destination, report)]
    if found.tag is not None and tag is None:
        lines.append(f"it is called {found.tag} in the export; name it here with `cellar tag`")
    session.emit(report.to_dict() | {"tag_inside": found.tag}, lines)


def _no_head(spec: str, opened: "Snapshot", destination: "Store", report: "CopyReport") -> Iterator[str]:
    """How a head comes to name what was copied: heads stay behind, since each store moves its own.

    Said of a whole snapshot that was named by its head, or holds a stack of one, where no tag names it there.
    """
    from shlex import quote

    from store.errors import CellarError

    if report.snapshot != opened.id or report.tag is not None:
        return
    if spec.startswith("head:"):
        head = spec.removeprefix("head:")
    elif opened.kinds.get("stack") == 1:
        head = opened.one("stack").name.partition("/")[2]
    else:
        return
    try:
        there = destination.head(head)
    except CellarError:  # a stack that `attach` did not make, or a head that cannot be read: it is copied
        return
    if there != report.snapshot:
        move = f"cellar --store {quote(destination.url)} head move {quote(head)} {report.snapshot[:12]}"
        yield f"head {head} does not name it there yet: {move}"


def _choice(kinds: list[str] | None, names: list[str] | None, requirements: bool) -> "Choice":
    from store.transfer import Choice

    return Choice(tuple(kinds or ()), tuple(names or ()), requirements)


def _lines(verb: str, report: "CopyReport", url: str) -> Iterator[str]:
    from flows.formatting import counted, size

    yield f"{verb} {counted(report.elements, 'element')} as snapshot {report.snapshot} into {url}"
    packs = f"{report.packs_sent:,} sent, {report.packs_made:,} made, {report.packs_found:,} found there"
    yield f"new elements: {report.new:,}; packs: {packs}; bytes: {size(report.bytes)}"
    yield f"signatures: {report.signatures:,}"
    if report.tag is not None:
        yield f"{report.tag} now names it"


@contextmanager
def mebibytes(session: "Session", title: str) -> Iterator["Progress"]:
    """Progress over bytes, shown in units that a person reads."""
    with session.progress(title, "MiB") as progress:
        yield lambda done, total, **figures: progress(done // _MIB, -(-total // _MIB), **figures)
