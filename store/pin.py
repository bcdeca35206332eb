"""Pinning: make a snapshot of exact versions, complete with everything they require."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from store import conditional
from store.backend import Backend
from store.catalog import Catalog
from store.checkpoint import write_checkpoint_if_due
from store.element import Ref
from store.errors import (
    ConflictError,
    ElementNotFound,
    InputError,
    IntegrityError,
    KeyMissing,
    MissingRequirement,
    SnapshotNotFound,
)
from store.format import plain, snapshot_key, snapshot_rows_key, unseal
from store.log import PIN, Commit, Draft, Log
from store.removals import Removals
from store.rows import Row
from store.snapshot import Snapshot, encode_snapshot, open_snapshot


def pin(
    backend: Backend,
    log: Log,
    catalog: Catalog,
    refs: Iterable[Ref],
    *,
    message: str,
    run: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Write the snapshot of `refs` and record it in one commit; pinning the same set again is a no-op.

    Raises `ElementNotFound` for a version that is not visible, `MissingRequirement` if the set is not closed
    under requirements, `InputError` for an empty set or two versions of one name, `ConflictError` while the
    snapshot is being removed. Nothing is written then.
    """
    chosen = _one_per_name(refs)
    resolved: tuple[Removals, bytes, bytes, tuple[int, int]] | None = None
    identity = ""
    wrote = False

    def prepare() -> Draft | Commit:
        nonlocal resolved, identity, wrote
        catalog.catch_up()
        removals = catalog.removals
        if resolved is None or resolved[0] is not removals:  # a visible row changes only by a removal
            rows = _resolve(catalog, chosen)
            _check_requirements(catalog, rows)
            resolved = removals, *encode_snapshot(rows), (len(rows), sum(row.length for row in rows))
        _, head, table, holds = resolved
        record = unseal(head, "the new snapshot", {"id": str, "rows": str})
        identity = record["id"]
        if identity in removals.dying.snapshots:
            raise ConflictError(
                f"snapshot {identity[:12]} is being removed at this moment; run again when `cellar gc` has "
                "finished"
            )
        earlier = None
        if identity not in removals.condemned.snapshots and identity not in removals.gone:
            earlier = log.last_pin(identity)
        if earlier is None or wrote:  # what was written on an older view may not fit this one
            backend.put(snapshot_rows_key(record["rows"]), table)
            _write_head(backend, catalog, identity, head)
            wrote = True
        return earlier or Draft(PIN, message, plain(run or {}), snapshot=identity, holds=holds)

    commit = log.append(prepare)
    catalog.catch_up()
    write_checkpoint_if_due(backend, log, catalog, commit)
    return open_snapshot(backend, identity)


def _write_head(backend: Backend, catalog: Catalog, identity: str, head: bytes) -> None:
    """Write a head record unless one is there that serves: two writers agree on the set, if not on its packs.

    One that names packs which were collected is left of a pin that was overtaken; it is replaced.
    """
    key = snapshot_key(identity)
    while not conditional.create(backend, key, head):
        try:
            before, token = backend.read_with_token(key)
            if _serves(backend, catalog, identity):
                return
        except (KeyMissing, SnapshotNotFound):
            continue  # removed at this moment
        if conditional.replace(backend, key, head, before=before, token=token):
            return


def _serves(backend: Backend, catalog: Catalog, identity: str) -> bool:
    """Tell whether visible rows are in all packs of a stored snapshot."""
    try:
        return open_snapshot(backend, identity).packs() <= catalog.packs().keys()
    except IntegrityError:
        return False


def _one_per_name(refs: Iterable[Ref]) -> dict[str, Ref]:
    chosen: dict[str, Ref] = {}
    for ref in refs:
        other = chosen.setdefault(ref.name, ref)
        if other.version != ref.version:
            raise InputError(
                f"two versions of {ref.name} were given ({other.version[:12]} and {ref.version[:12]}); "
                "a snapshot holds one version of a name, so drop one"
            )
    if not chosen:
        raise InputError("an empty set cannot be pinned; publish elements first or widen the selection")
    return chosen


def _resolve(catalog: Catalog, chosen: Mapping[str, Ref]) -> list[Row]:
    visible = catalog.get_all(ref.version for ref in chosen.values())
    for ref in chosen.values():
        row = visible.get(ref.version)
        if row is None or row.name != ref.name:
            raise ElementNotFound(
                f"{ref.name}@{ref.version[:12]} is not in the store; publish it before pinning"
            )
    return list(visible.values())


def _check_requirements(catalog: Catalog, rows: Sequence[Row]) -> None:
    pinned = {row.version for row in rows}
    for row in sorted(rows, key=lambda row: row.name):
        for version in row.requires:
            if version not in pinned:
                required = catalog.get(version)
                what = f"{required.name}@{version[:12]}" if required else f"version {version[:12]}"
                raise MissingRequirement(
                    f"{row.name} requires {what}, which is not in the set; add it to the set"
                )
