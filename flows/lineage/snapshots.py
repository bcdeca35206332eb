"""Lineage of a snapshot: who pinned it from what, its evaluations, and the heads that came to it."""

import json
from typing import Any

from flows.lineage.commits import commit_record
from flows.lineage.elements import FOR_EVER, made_from
from flows.lineage.holders import evaluations_of, names_of
from flows.provenance.inputs import corpora_of
from store import Snapshot, Store
from store.errors import IntegrityError, SnapshotNotFound
from tasks.errors import BadPayload, TooLittleText


def snapshot_lineage(
    store: Store, snapshot: Snapshot, *, up: bool = True, down: bool = True, depth: int | None = None
) -> dict[str, Any]:
    """What a snapshot was made from (`up`) and what was made with it (`down`).

    Of its memories the digests of their documents are told; each has a lineage of its own.
    """
    found: dict[str, Any] = {
        "snapshot": snapshot.id,
        "names": names_of(store).get(snapshot.id, []),
        "elements": snapshot.count,
        "bytes": snapshot.bytes,
        "kinds": snapshot.kinds,
        "pinned": [commit_record(commit) for commit in store.log() if commit.snapshot == snapshot.id],
    }
    if up:
        seen: set[str] = set()
        found["made_from"] = [
            entry
            for kind in sorted(snapshot.kinds)
            if kind != "memory"
            for row in snapshot.rows(kind)
            for entry in made_from(store, {row.version: kind}, depth or FOR_EVER, seen)
        ]
        found["memories"] = _memories(snapshot)
        found["corpora"] = _corpora(store, snapshot)
    if down:
        found["made_with"] = {
            "evaluations": evaluations_of(store, [{"snapshot": snapshot.id}]),
            "heads": _arrivals(store, snapshot.id),
        }
    return found


def _memories(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Its memories by name, with the digests of their documents; of their rows nothing else is decoded."""
    columns = ("name", "version", "kind", "provenance")
    return [
        {"element": f"{name}@{version}", "document": json.loads(provenance).get("document")}
        for table in snapshot.scan(columns)
        for name, version, kind, provenance in zip(*(table[c].to_pylist() for c in columns), strict=True)
        if kind == "memory"
    ]


def _corpora(store: Store, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The corpora that hold the documents of its memories; none where no corpus is known to."""
    try:
        reports = corpora_of(store, snapshot) if snapshot.kinds.get("memory") else []
    except (TooLittleText, BadPayload):
        return []
    rows = store.catalog().get_all(ref.version for ref in reports)
    return [
        {
            "corpus": str(ref),
            "documents": rows[ref.version].facts.get("documents"),
            "params": rows[ref.version].provenance.get("params"),
            "made": commit_record(store.history.at(rows[ref.version].commit)),
        }
        for ref in reports
    ]


def _arrivals(store: Store, identity: str) -> list[dict[str, Any]]:
    """Every move of a head to the snapshot that the head remembers: when, by whom, why."""
    found = []
    for head in store.heads(damaged=lambda error: None):
        try:
            positions = store.head_log(head)
        except (SnapshotNotFound, IntegrityError):  # removed at this moment, or damaged as in `names_of`
            continue
        for place, position in enumerate(positions):
            if position.snapshot == identity:
                left = positions[place + 1].time if place + 1 < len(positions) else None
                found.append({"head": head, "since": position.time, "until": left, **position.note.to_dict()})
    return sorted(found, key=lambda entry: str(entry["since"]))
