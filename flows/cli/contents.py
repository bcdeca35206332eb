"""The command that looks inside a snapshot: who pinned it, what it holds, all about one element."""

from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from flows.cli.launch import Injected
from flows.cli.session import Session
from flows.formatting import columns, counted, flatten

if TYPE_CHECKING:
    from store import Commit, Row, Snapshot, Store

_HIDDEN = ("length", "requires", "_proven")
"""Fields of a row that are shown under another name, or are of no concern outside the store."""
_LONGEST = 400
"""Characters of a value of provenance or facts that people are shown."""


def show(
    snapshot: str,
    /,
    *,
    kind: str | None = None,
    name: str | None = None,
    element: str | None = None,
    session: Injected,
) -> None:
    """Show who pinned a snapshot, what it holds, or everything that is recorded about one of its elements.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    kind
        List the elements of this kind only: memory, codec, index, ...
    name
        List the elements whose full name matches this glob only, e.g. 'memory/numpy.*'.
    element
        Show this element: provenance, facts, requirements, place, and its versions over time.
    """
    store = session.open_store()
    opened = store.snapshot(snapshot)
    if element is not None:
        record = _element(store, opened, element)
        session.emit(record, _element_lines(record))
        return
    kinds: dict[str, dict[str, int]] = {}
    packs: set[str] = set()
    listed: list[dict[str, Any]] = []
    with session.progress("read snapshot", "elements") as progress:
        for done, entry in enumerate(_entries(opened), start=1):
            counted = kinds.setdefault(entry["kind"], {"elements": 0, "bytes": 0})
            counted["elements"] += 1
            counted["bytes"] += entry["length"]
            packs.add(entry["pack"])
            if (kind is None or entry["kind"] == kind) and (name is None or fnmatchcase(entry["name"], name)):
                shown = {"name": entry["name"], "version": entry["version"], "bytes": entry["length"]}
                listed.append({**shown, "requires": entry["requires"]})
            progress(done, opened.count)
    pins = [commit for commit in store.log() if commit.snapshot == opened.id]
    result = {
        "snapshot": opened.id,
        "names": names_of(session, store).get(opened.id, []),
        "pins": [
            {"commit": pin.sequence, "time": pin.time, "message": pin.message, "run": pin.run} for pin in pins
        ],
        "count": opened.count,
        "bytes": opened.bytes,
        "kinds": kinds,
        "packs": len(packs),
        "elements": listed,
    }
    session.emit(result, _lines(result))


def names_of(session: Session, store: "Store") -> dict[str, list[str]]:
    """Tags, and heads as `head:name`, by the snapshots that they name; sorted. Damaged ones are warned of."""
    names: dict[str, list[str]] = {}
    for name, identity in store.tags(damaged=session.warn).items():
        names.setdefault(identity, []).append(name)
    for name, identity in store.heads(damaged=session.warn).items():
        names.setdefault(identity, []).append(f"head:{name}")
    return {identity: sorted(given) for identity, given in names.items()}


def _entries(snapshot: "Snapshot") -> Iterator[dict[str, Any]]:
    for table in snapshot.scan(["name", "kind", "version", "length", "pack", "requires"]):
        yield from table.to_pylist()


def _lines(result: dict[str, Any]) -> Iterator[str]:
    yield f"snapshot {result['snapshot']}"
    yield f"names    {', '.join(result['names']) or 'none'}"
    for pin in result["pins"]:
        yield f"pinned   {pin['time']} in commit {pin['commit']:,}: {' '.join(pin['message'].split())}"
        by = ", ".join(f"{name} {value}" for name, value in flatten(pin["run"]) if "." not in name)
        yield f"by       {by or 'unknown'}"
    elements, packs = counted(result["count"], "element"), result["packs"]
    yield f"holds    {elements} with {result['bytes']:,} bytes; packs: {packs:,}"
    yield ""
    kinds = [(kind, figures["elements"], figures["bytes"]) for kind, figures in result["kinds"].items()]
    yield from columns(kinds, ("kind", "elements", "bytes"))
    yield ""
    rows = [(entry["name"], entry["version"][:12], entry["bytes"]) for entry in result["elements"]]
    yield from columns(rows, ("element", "version", "bytes")) or ["no such element"]


def _element(store: "Store", snapshot: "Snapshot", name: str) -> dict[str, Any]:
    """Everything about one element; requirements by name, and which commits published its versions."""
    row = snapshot.get(name)
    catalog = store.catalog()
    required = sorted(catalog.get_all(row.requires).values(), key=lambda other: other.name)
    commits = {commit.sequence: commit for commit in store.log()}
    return {
        "snapshot": snapshot.id,
        **{field: value for field, value in asdict(row).items() if field not in _HIDDEN},
        "bytes": row.length,
        "requires": [{"name": other.name, "version": other.version} for other in required],
        "versions": [
            _version(other, commits.get(other.commit), held=other.version == row.version)
            for other in catalog.versions(name)
        ],
    }


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}... (--json shows all)"


def _version(row: "Row", commit: "Commit | None", *, held: bool) -> dict[str, Any]:
    """One version of an element with the commit that made it visible."""
    return {
        "version": row.version,
        "bytes": row.length,
        "commit": row.commit,
        "time": commit.time if commit else None,
        "message": commit.message if commit else None,
        "held": held,
    }


def _element_lines(record: dict[str, Any]) -> Iterator[str]:
    yield f"{record['name']}@{record['version']}"
    yield ""
    tensor = f"{record['dtype']} {record['shape']}" if record["dtype"] else "none"
    yield from columns(
        [
            ("payload", f"{record['bytes']:,} bytes, {record['media']}, SHA-256 {record['digest']}"),
            ("tensor", tensor),
            ("pack", f"{record['pack']} at byte {record['offset']:,}"),
            *(("requires", f"{entry['name']}@{entry['version']}") for entry in record["requires"]),
        ]
    )
    for part in ("provenance", "facts"):
        yield from ("", part)
        values = [(f"  {name}", _cut(value)) for name, value in flatten(record[part])]
        yield from columns(values) or ["  none"]
    yield from ("", "versions")
    rows = [
        (
            "  " + entry["version"][:12],
            entry["bytes"],
            entry["commit"],
            entry["time"],
            "in this snapshot" if entry["held"] else "",
            entry["message"],
        )
        for entry in record["versions"]
    ]
    yield from columns(rows, ("  version", "bytes", "commit", "time", "", "message"))
