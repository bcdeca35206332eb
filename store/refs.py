"""Names of snapshots: tags, which never move, and heads, which move by compare-and-swap only."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from store import conditional
from store.backend import Backend
from store.catalog import Catalog
from store.errors import (
    HeadMoved,
    InputError,
    IntegrityError,
    KeyMissing,
    SnapshotNotFound,
    TagExists,
)
from store.format import (
    HEAD_PREFIX,
    SNAPSHOT_PREFIX,
    TAG_PREFIX,
    check_label,
    is_digest,
    remedy,
    seal,
    unseal,
)
from store.log import Log
from store.naming import check_named, take_back
from store.positions import Note, Position, history_after, positions_of
from store.snapshot import open_snapshot

_SHORTEST_PREFIX = 8
_HEX = frozenset("0123456789abcdef")


def make_tag(
    backend: Backend, log: Log, catalog: Catalog, name: str, snapshot: str, *, run: Mapping[str, Any]
) -> None:
    """Create a tag; the same tag on the same snapshot is a no-op, on another raises `TagExists`."""
    key = TAG_PREFIX + check_label(name, "tag")
    open_snapshot(backend, snapshot)
    take_back(log, catalog, snapshot, by=f"tag {name}", run=run)
    body = _encode(name, snapshot)
    if conditional.create(backend, key, body):
        check_named(catalog, snapshot, undo=lambda: _remove(backend, key, body))
        return
    holds = read_ref(backend, key)
    if holds != snapshot:
        raise TagExists(
            f"tag {name} already names snapshot {str(holds)[:12]} and never moves; choose another name"
        )


def move_head(
    backend: Backend,
    log: Log,
    catalog: Catalog,
    name: str,
    snapshot: str,
    *,
    expect: str | None,
    note: Note,
    run: Mapping[str, Any],
) -> None:
    """Move a head to `snapshot` if it points to `expect` now (None: if it does not exist yet).

    Where it pointed before stays in its record, with what `note` says of this move. A head that names
    `snapshot` already is left as it is, so that who repeats a move after an unknown outcome finds it done.
    Raises `HeadMoved` if it points elsewhere, `SnapshotNotFound` if there is no `snapshot`.
    """
    key = HEAD_PREFIX + check_label(name, "head")
    note.check()
    open_snapshot(backend, snapshot)
    take_back(log, catalog, snapshot, by=f"head {name}", run=run)
    ours: Position | None = None
    positions: tuple[Position, ...] = ()
    while True:
        seen = positions
        before, token = _read_head(backend, key)
        positions = positions_of(unseal(before, key), key) if before else ()
        now = positions[-1].snapshot if positions else None
        if now == snapshot or (ours in positions and ours not in seen):
            return  # there already, or our write landed without an answer and somebody moved it on since
        if now != expect:
            raise HeadMoved(
                f"head {name} points to {now[:12] if now else 'nothing'}, not to "
                f"{expect[:12] if expect else 'nothing'}; look at it and move it again"
            )
        body = _encode(name, snapshot, **history_after(positions, note))
        ours = positions_of(unseal(body, key), key)[-1]
        if before:
            moved = conditional.replace(backend, key, body, before=before, token=token)
            undo = partial(_restore, backend, key, body, before)
        else:
            moved = conditional.create(backend, key, body)
            undo = partial(_remove, backend, key, body)
        if moved:
            check_named(catalog, snapshot, undo=undo)
            return


def read_ref(backend: Backend, key: str) -> str | None:
    """Return the snapshot id that a tag or head key names, None if there is no such name."""
    try:
        data = backend.read(key)
    except KeyMissing:
        return None
    return _decode(data, key)


def read_positions(backend: Backend, name: str) -> tuple[Position, ...]:
    """Return where a head pointed, oldest first, the present position last.

    Raises `SnapshotNotFound` if there is no such head.
    """
    key = HEAD_PREFIX + check_label(name, "head")
    try:
        data = backend.read(key)
    except KeyMissing as error:
        raise SnapshotNotFound(
            f"no head {name} in {backend.url}; `cellar head` lists those that exist"
        ) from error
    return positions_of(unseal(data, key), key)


def list_refs(
    backend: Backend, prefix: str, *, damaged: Callable[[IntegrityError], None] | None = None
) -> dict[str, str]:
    """Return all tags (`TAG_PREFIX`) or heads (`HEAD_PREFIX`) with their snapshot ids.

    A damaged one raises `IntegrityError`, since nobody knows what it names, unless `damaged` is there to be
    told: then it is left out.
    """
    named: dict[str, str] = {}
    for key in [item.key for item in backend.list(prefix)]:
        try:
            snapshot = read_ref(backend, key)
        except IntegrityError as error:
            if damaged is None:
                raise
            damaged(error)
        else:
            if snapshot is not None:
                named[key.removeprefix(prefix)] = snapshot
    return named


def resolve(backend: Backend, spec: str) -> str:
    """Return the snapshot id that `spec` means.

    `spec` is a full id, a unique prefix of one of at least 8 digits, a tag or a head; `tag:x` and `head:x`
    say which. Raises `SnapshotNotFound`, or `InputError` if `spec` could mean different snapshots.
    """
    if is_digest(spec):
        return spec
    found = dict(_meanings(backend, spec))
    if len(set(found.values())) > 1:
        raise InputError(f"{spec!r} could be {' or '.join(sorted(found))}; write out which one is meant")
    for snapshot in found.values():
        return snapshot
    raise SnapshotNotFound(
        f"no snapshot, tag or head {spec!r} in {backend.url}; `cellar snapshot ls` shows those that exist"
    )


def _meanings(backend: Backend, spec: str) -> Iterator[tuple[str, str]]:
    noun, colon, name = spec.partition(":")
    if not colon:
        noun, name = "", spec
    for kind, prefix in (("tag", TAG_PREFIX), ("head", HEAD_PREFIX)):
        if noun in ("", kind):
            snapshot = read_ref(backend, prefix + check_label(name, kind if noun else "snapshot"))
            if snapshot is not None:
                yield f"{kind}:{name}", snapshot
    if not noun and len(spec) >= _SHORTEST_PREFIX and _HEX.issuperset(spec):
        for item in backend.list(SNAPSHOT_PREFIX + spec):
            identity = item.key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json")
            if is_digest(identity):
                yield identity, identity


def _read_head(backend: Backend, key: str) -> tuple[bytes, str]:
    """Return what a head says and its token, nothing if there is no such head."""
    try:
        return backend.read_with_token(key)
    except KeyMissing:
        return b"", ""


def _remove(backend: Backend, key: str, body: bytes) -> None:
    """Remove a name that this process made, unless it was changed since."""
    with suppress(KeyMissing):
        if backend.read(key) == body:
            backend.delete(key)


def _restore(backend: Backend, key: str, body: bytes, before: bytes) -> None:
    """Put back what a head said before this process moved it, unless it was moved on since."""
    with suppress(KeyMissing):
        found, token = backend.read_with_token(key)
        if found == body:
            conditional.replace(backend, key, before, before=body, token=token)


def _decode(data: bytes, key: str) -> str:
    snapshot = str(unseal(data, key, {"snapshot": str})["snapshot"])
    if not is_digest(snapshot):
        raise IntegrityError(f"{key} does not name a snapshot; {remedy(key)}")
    return snapshot


def _encode(name: str, snapshot: str, **more: object) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return seal({"id": uuid.uuid4().hex, "name": name, "snapshot": snapshot, "time": now, **more})
