"""The commit log: the one place that decides what is visible, and in which order.

Entry `n` is created under `log/<n>` and never changes; whoever creates it has made commit `n`. It names the
digest of entry `n - 1`, so a reader notices any change of history; entry 1 names the digest of
`format.json`. Entries are sealed JSON and carry a unique id.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from store import conditional
from store.backend import Backend
from store.checkpoint import Checkpoint, latest_checkpoint
from store.errors import ConflictError, IntegrityError, KeyMissing, NotAStore, UnsupportedFormat
from store.fetch import fetch_all
from store.format import (
    FORMAT_KEY,
    LOG_PREFIX,
    RESTORE,
    check_fields,
    is_digest,
    log_key,
    seal,
    sha256,
    unseal,
)

PUBLISH = "publish"
PIN = "pin"
CONDEMN = "condemn"
COLLECT = "collect"
SWEPT = "swept"
REPAIR = "repair"
ACTIONS = frozenset({PUBLISH, PIN, CONDEMN, COLLECT, SWEPT, REPAIR})
_LOST_RACES = 1000
_ENTRY = re.compile(re.escape(LOG_PREFIX) + r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class Commit:
    """One visible change of a store.

    `sequence` counts from 1 (0 is the creation of the store); `digest` is the SHA-256 of the log entry;
    `elements` and `bytes` count what the commit added; `packs` the packs it refers to; `snapshot` is set on a
    pin; `run` says where and when the work happened and never enters a version. `removal` is set on `condemn`
    and `collect`, see `store.removals`; the `indexes` of a `repair` stand in for those it `replaces`.
    """

    sequence: int
    digest: str
    id: str
    action: str
    message: str
    time: str
    build: str = ""
    receipts: str = ""
    indexes: tuple[str, ...] = ()
    elements: int = 0
    bytes: int = 0
    packs: int = 0
    snapshot: str = ""
    run: dict[str, Any] = field(default_factory=dict, hash=False)
    removal: str = ""
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What a committer wants to make visible; see `Commit` for the fields."""

    action: str
    message: str
    run: Mapping[str, Any]
    build: str = ""
    receipts: str = ""
    indexes: tuple[str, ...] = ()
    elements: int = 0
    bytes: int = 0
    packs: int = 0
    snapshot: str = ""
    removal: str = ""
    replaces: tuple[str, ...] = ()


_FIELDS: dict[str, type] = {
    "build": str,
    "bytes": int,
    "elements": int,
    "id": str,
    "indexes": list,
    "message": str,
    "packs": int,
    "receipts": str,
    "run": dict,
    "snapshot": str,
    "time": str,
}


class Log:
    """The commits of one store, read incrementally. Safe to share between threads."""

    def __init__(self, backend: Backend, origin: Commit) -> None:
        self._backend = backend
        self.lock = threading.RLock()
        self._origin = origin
        self._entries: list[bytes] = []
        self._commits: list[Commit] = []
        self._checkpoint: Checkpoint | None = None

    @property
    def tip(self) -> Commit:
        """The newest commit that was read; commit 0 in an empty store."""
        return self._commits[-1] if self._commits else self._origin

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that reading started from."""
        return self._checkpoint or Checkpoint.empty()

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Remember a checkpoint that was just written, so that its blocks are not merged again."""
        with self.lock:
            self._checkpoint = checkpoint

    def commits(self) -> list[Commit]:
        """All commits that were read, oldest first."""
        with self.lock:
            return list(self._commits)

    def at(self, sequence: int) -> Commit:
        """The commit of that number; 0 is the creation of the store."""
        with self.lock:
            return self._commits[sequence - 1] if sequence else self._origin

    def entries(self) -> list[bytes]:
        """The exact bytes of all entries that were read, oldest first."""
        with self.lock:
            return list(self._entries)

    def refresh(self) -> None:
        """Read what was committed since the last call: one request if there is nothing new.

        The first call starts at the newest checkpoint and a listing; from there on, and because a listing may
        be late on some servers, it asks for `n + 1` until that is missing.
        """
        with self.lock:
            if self._checkpoint is None:
                self._open()
            while True:
                try:
                    entry = self._backend.read(log_key(self.tip.sequence + 1))
                except KeyMissing:
                    return
                self._accept(entry)

    def append(self, prepare: Callable[[], Draft | Commit]) -> Commit:
        """Make one commit, whoever else commits at the same time.

        `prepare` is called on a fresh view of the log, again after every lost race, and returns what to
        commit or the earlier commit that makes this one superfluous.
        """
        with self.lock:
            for _ in range(_LOST_RACES):
                self.refresh()
                draft = prepare()
                if isinstance(draft, Commit):
                    return draft
                self._check_origin()
                entry = encode_entry(
                    draft,
                    sequence=self.tip.sequence + 1,
                    previous=self.tip.digest,
                    unique=uuid.uuid4().hex,
                    time=datetime.now(UTC).isoformat(timespec="seconds"),
                )
                if conditional.create(self._backend, log_key(self.tip.sequence + 1), entry):
                    return self._accept(entry)
        raise ConflictError(
            f"{self._backend.url} is busy: {_LOST_RACES} other commits came first; run again later"
        )

    def _check_origin(self) -> None:
        """Refuse to commit where the store is gone or another one was made since this one was opened."""
        try:
            found = sha256(self._backend.read(FORMAT_KEY))
        except KeyMissing:
            found = ""
        if found != self._origin.digest:
            raise NotAStore(
                f"the store at {self._backend.url} is gone or was replaced since it was opened; make sure "
                "that the right place is mounted, and run again"
            )

    def _open(self) -> None:
        checkpoint = latest_checkpoint(self._backend)
        after = log_key(len(checkpoint.entries))
        listed = [item.key for item in self._backend.list(LOG_PREFIX, after=after)]
        keys = [key for key in listed if is_entry(key)]
        entries = [*checkpoint.entries, *fetch_all(self._backend, keys)]
        # Taken over together: what fails before leaves nothing half-read for the next attempt.
        previous, commits = self._origin, []
        for entry in entries:
            previous = decode_commit(entry, previous=previous)
            commits.append(previous)
        self._entries, self._commits, self._checkpoint = entries, commits, checkpoint

    def _accept(self, entry: bytes) -> Commit:
        commit = decode_commit(entry, previous=self.tip)
        self._entries.append(entry)
        self._commits.append(commit)
        return commit


def encode_entry(draft: Draft, *, sequence: int, previous: str, unique: str, time: str) -> bytes:
    """Return the log entry that makes `draft` commit number `sequence`; `unique` is its id."""
    record: dict[str, Any] = {
        "action": draft.action,
        "build": draft.build,
        "bytes": draft.bytes,
        "elements": draft.elements,
        "id": unique,
        "indexes": list(draft.indexes),
        "message": draft.message,
        "packs": draft.packs,
        "previous": previous,
        "receipts": draft.receipts,
        "run": draft.run,
        "sequence": sequence,
        "snapshot": draft.snapshot,
        "time": time,
    }
    # Only where they say something: entries without them stay readable for programs that lack them.
    if draft.removal:
        record["removal"] = draft.removal
    if draft.replaces:
        record["replaces"] = list(draft.replaces)
    return seal(record)


def is_entry(key: str) -> bool:
    """Whether a key is that of a log entry; a synchronisation tool may have left others beside them."""
    return _ENTRY.fullmatch(key) is not None


def decode_commit(entry: bytes, *, previous: Commit) -> Commit:
    """Decode the entry after `previous`; raises `IntegrityError` if it does not follow or is damaged."""
    key = log_key(previous.sequence + 1)
    record = unseal(entry, key, {"action": str, "previous": str, "sequence": int})
    if record["sequence"] != previous.sequence + 1 or record.pop("previous") != previous.digest:
        raise IntegrityError(f"{key} does not follow the entry before it; {RESTORE}")
    if record["action"] not in ACTIONS:
        raise UnsupportedFormat(
            f"{key} holds the action {record['action']!r}; upgrade cellar to read this store"
        )
    check_fields({"removal": "", "replaces": [], **record}, key, _FIELDS | {"removal": str, "replaces": list})
    for name in ("indexes", "replaces"):
        record[name] = tuple(record.get(name, ()))
    named = [*record["indexes"], *record["replaces"], record["snapshot"], record.get("removal", "")]
    if not all(isinstance(digest, str) and (not digest or is_digest(digest)) for digest in named):
        raise IntegrityError(f"{key} names an object that no store has; {RESTORE}")
    try:
        return Commit(digest=sha256(entry), **record)
    except TypeError as error:
        raise UnsupportedFormat(
            f"{key} has fields that this version does not know; upgrade cellar"
        ) from error
