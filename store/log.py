"""The commit log: the one place that decides what is visible, and in which order.

Entry `n` is created under `log/<n>` and never changes; whoever creates it has made commit `n`. It names the
digest of entry `n - 1`, so a reader notices any change of history; entry 1 names the digest of
`format.json`. Entries are sealed JSON and carry a unique id.

A log that is opened starts at a checkpoint and reads the entries after it. Older ones are read, in blocks,
only by who asks for them.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from store import conditional
from store.backend import Backend
from store.entry import (
    ACTIONS,
    COLLECT,
    CONDEMN,
    PIN,
    PUBLISH,
    REPAIR,
    SWEPT,
    Commit,
    Draft,
    decode_commit,
    decode_lone,
    encode_entry,
    is_entry,
    sequence_of,
)
from store.errors import ConflictError, IntegrityError, KeyMissing, NotAStore
from store.fetch import fetch_all
from store.format import ENTRY_PREFIX, FORMAT_KEY, RESTORE, log_key, sha256, unseal
from store.history import Block, read_block
from store.manifest import Checkpoint, checkpoints

__all__ = [
    "ACTIONS",
    "COLLECT",
    "CONDEMN",
    "PIN",
    "PUBLISH",
    "REPAIR",
    "SWEPT",
    "Commit",
    "Draft",
    "Log",
    "decode_commit",
    "encode_entry",
    "is_entry",
]

_LOST_RACES = 1000
_WINDOW = 1024
"""Entries that are asked for together: what a stray name claims to be the newest may be very far away."""
LOOK_AGAIN = 64
"""Commits after which a log that others append to looks for a newer checkpoint."""
_log = logging.getLogger(__name__)


class Log:
    """The commits of one store, read incrementally. Safe to share between threads."""

    def __init__(self, backend: Backend, origin: Commit) -> None:
        self._backend = backend
        self.lock = threading.RLock()
        self._origin = origin
        self._is_open = False
        self._checkpoint = Checkpoint()
        self._base = origin
        self._recent: list[Commit] = []
        self._entries: list[bytes] = []
        self._distrusted: set[str] = set()
        self._blocks: dict[str, list[bytes]] = {}

    @property
    def tip(self) -> Commit:
        """The newest commit that was read; commit 0 in an empty store."""
        return self._recent[-1] if self._recent else self._base

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that reading started from."""
        return self._checkpoint

    def recent(self) -> list[Commit]:
        """The commits after the checkpoint that were read, oldest first."""
        with self.lock:
            return list(self._recent)

    def recent_entries(self) -> list[bytes]:
        """The exact bytes of the entries of `recent`."""
        with self.lock:
            return list(self._entries)

    def commits(self) -> list[Commit]:
        """All commits up to the tip, oldest first; reads those before the checkpoint."""
        with self.lock:
            commits, previous = [], self._origin
            for block in self._checkpoint.history:
                for entry in self.entries_of(block):
                    previous = decode_commit(entry, previous=previous)
                    commits.append(previous)
            if previous.digest != self._base.digest:
                raise IntegrityError(
                    f"{log_key(self._base.sequence)} does not follow the entries before it; {RESTORE}"
                )
            return commits + self._recent

    def at(self, sequence: int) -> Commit:
        """The commit of that number up to the tip; 0 is the creation of the store."""
        with self.lock:
            if sequence == 0:
                return self._origin
            if sequence > self._base.sequence:
                return self._recent[sequence - self._base.sequence - 1]
            block = next(block for block in self._checkpoint.history if sequence <= block.last)
            return decode_lone(self.entries_of(block)[sequence - block.first], sequence)

    def last_pin(self, snapshot: str) -> Commit | None:
        """The newest commit that pinned `snapshot`; reads at most the blocks of history that may know."""
        with self.lock:
            for commit in reversed(self._recent):
                if commit.snapshot == snapshot:
                    return commit
            for block in reversed(self._checkpoint.history):
                if block.may_pin(snapshot):
                    entries = self.entries_of(block)
                    for sequence in range(block.last, block.first - 1, -1):
                        if snapshot.encode() in entries[sequence - block.first]:
                            commit = decode_lone(entries[sequence - block.first], sequence)
                            if commit.snapshot == snapshot:
                                return commit
            return None

    def entries_of(self, block: Block) -> list[bytes]:
        """Return the entries in a block of history, one by one from the log if the block is damaged."""
        with self.lock:
            entries = self._blocks.get(block.digest)
            if entries is None:
                try:
                    entries = read_block(self._backend, block)
                except (IntegrityError, KeyMissing) as error:
                    _log.warning("%s is read entry by entry: %s", self._backend.url, error)
                    entries = self._read_entries(block.first, block.last)
                    for sequence, entry in enumerate(entries, start=block.first):
                        decode_lone(entry, sequence)  # a block vouches for its entries, so somebody must
                self._blocks[block.digest] = entries
            return entries

    def refresh(self) -> None:
        """Read what was committed since the last call: one request if there is nothing new.

        The first call starts at the newest checkpoint and a listing; from there on, and because a listing may
        be late on some servers, it asks for `n + 1` until that is missing.
        """
        with self.lock:
            if not self._is_open:
                self._open()
            before = len(self._recent)
            while True:
                try:
                    entry = self._backend.read(log_key(self.tip.sequence + 1))
                except KeyMissing:
                    break
                self._accept(entry)
            if before // LOOK_AGAIN != len(self._recent) // LOOK_AGAIN:
                self.look_for_checkpoint()

    def append(self, prepare: Callable[[], Draft | Commit]) -> Commit:
        """Make one commit, whoever else commits at the same time.

        `prepare` is called on a fresh view of the log, again after every lost race, and returns what to
        commit or the earlier commit that makes this one superfluous. It is called again as well if it came
        upon damage, and the log was opened anew: part of the answer may be of a time before later entries.
        """
        with self.lock:
            for _ in range(_LOST_RACES):
                self.refresh()
                seen = self.tip.digest
                draft = prepare()
                if self.tip.digest != seen:
                    continue
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

    def look_for_checkpoint(self) -> None:
        """Start from the newest checkpoint of those up to the tip, if another one than now."""
        with self.lock:
            for checkpoint in self._trusted():
                if checkpoint.sequence <= self._checkpoint.sequence:
                    return
                if checkpoint.sequence <= self.tip.sequence and (
                    self.at(checkpoint.sequence).digest == checkpoint.tip
                ):
                    self.adopt(checkpoint)
                    return

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Start from `checkpoint` from now on: it agrees with the log, and is not older than that in use."""
        with self.lock:
            count = checkpoint.sequence - self._base.sequence
            if count < 0 or checkpoint.key == self._checkpoint.key:
                return
            if count:
                self._base = self._recent[count - 1]
            self._recent, self._entries = self._recent[count:], self._entries[count:]
            self._checkpoint = checkpoint
            self._blocks.clear()

    def distrust_checkpoint(self) -> bool:
        """Open again without the checkpoint in use, which led to damaged data; False if none is in use."""
        with self.lock:
            if not self._checkpoint.key:
                return False
            self._distrusted.add(self._checkpoint.key)
            self._open()
            return True

    def _check_origin(self) -> None:
        """Refuse to commit where the store is gone or another one was made since this one was opened."""
        try:
            found = self._backend.read(FORMAT_KEY)
        except KeyMissing:
            found = b""
        if sha256(found) != self._origin.digest:
            if found:
                unseal(found, FORMAT_KEY)  # a damaged record says nothing about which store this is
            raise NotAStore(
                f"the store at {self._backend.url} is gone or was replaced since it was opened; make sure "
                "that the right place is mounted, and run again"
            )

    def _open(self) -> None:
        checkpoint, base = self._newest_checkpoint()
        after = log_key(checkpoint.sequence)
        listed = [item.key for item in self._backend.list(ENTRY_PREFIX, after=after) if is_entry(item.key)]
        # A listing that is made while others commit may lack an entry before its newest: ask for all by name.
        # Taken over together: what fails before leaves nothing half-read for the next attempt.
        entries = self._read_entries(checkpoint.sequence + 1, sequence_of(max(listed, default=after)))
        previous, commits = base, []
        for entry in entries:
            previous = decode_commit(entry, previous=previous)
            commits.append(previous)
        self._checkpoint, self._base = checkpoint, base
        self._recent, self._entries = commits, entries
        self._blocks.clear()
        self._is_open = True

    def _newest_checkpoint(self) -> tuple[Checkpoint, Commit]:
        """Return the newest checkpoint that agrees with the log, and the commit that it is about."""
        for checkpoint in self._trusted():
            try:
                entry = self._backend.read(log_key(checkpoint.sequence))
                if sha256(entry) == checkpoint.tip:
                    return checkpoint, decode_lone(entry, checkpoint.sequence)
            except KeyMissing:
                pass
            _log.warning("%s is left out: it is about another log than that of the store", checkpoint.key)
        return Checkpoint(), self._origin

    def _trusted(self) -> Iterator[Checkpoint]:
        return (found for found in checkpoints(self._backend) if found.key not in self._distrusted)

    def _accept(self, entry: bytes) -> Commit:
        commit = decode_commit(entry, previous=self.tip)
        self._entries.append(entry)
        self._recent.append(commit)
        return commit

    def _read_entries(self, first: int, last: int) -> list[bytes]:
        entries: list[bytes] = []
        for start in range(first, last + 1, _WINDOW):
            keys = [log_key(number) for number in range(start, min(start + _WINDOW, last + 1))]
            try:
                entries += fetch_all(self._backend, keys)
            except KeyMissing as error:
                raise IntegrityError(f"an entry of the log is missing ({error}); {RESTORE}") from error
        return entries
