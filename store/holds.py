"""Holds: what keeps a snapshot alive while somebody works with it, for a limited time.

`pins/<run>.json` says which snapshot, who holds it and for how many seconds from its last write; its age is
that of the object in the storage's own clock. A hold protects like a tag until that time is over or it is
released. Expired ones protect nothing and stay until somebody releases them, because a collector that
deleted one could meet its renewal.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from store import conditional, elapsed
from store.backend import Backend
from store.catalog import Catalog
from store.errors import HoldExists, HoldNotFound, InputError, IntegrityError, KeyMissing
from store.format import HOLD_PREFIX, check_label, hold_key, is_digest, remedy, seal, unseal
from store.log import Log
from store.naming import check_named, take_back
from store.snapshot import open_snapshot

HOLD_SECONDS = 24 * 3600
"""How long a hold counts after it was last written, unless its maker says otherwise."""

LONGEST_HOLD_SECONDS = 366 * 24 * 3600
"""What is to be kept longer than this deserves a tag."""

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class HoldInfo:
    """A hold as it is stored; it counts until `expires`, by the storage's clock."""

    name: str
    snapshot: str
    owner: str
    expires: datetime

    def expired(self, now: datetime) -> bool:
        """Tell whether it no longer counts at `now`, a time in the storage's clock."""
        return now >= self.expires


class Hold:
    """The hold of one run on one snapshot; a context manager that takes it and releases it at the end.

    Names are create-only: a name that keeps another snapshot is refused with `HoldExists` until it expires,
    and one that keeps the same snapshot is renewed.
    """

    def __init__(
        self,
        backend: Backend,
        log: Log,
        catalog: Catalog,
        name: str,
        snapshot: str,
        *,
        owner: str,
        run: Mapping[str, Any] | None = None,
        seconds: int = HOLD_SECONDS,
    ) -> None:
        self.name = check_label(name, "hold")
        self.snapshot = snapshot
        self._backend = backend
        self._log = log
        self._catalog = catalog
        self._owner = owner
        self._run = dict(run or {})
        self._seconds = _checked_seconds(seconds)
        self._id = uuid.uuid4().hex
        self._written = float("-inf")

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def take(self) -> None:
        """Take or renew the hold; raises `HoldExists`, or `SnapshotNotFound` if the snapshot is no more."""
        began = elapsed.seconds()
        open_snapshot(self._backend, self.snapshot)
        take_back(self._log, self._catalog, self.snapshot, by=f"hold {self.name}", run=self._run)
        self._write()
        check_named(self._catalog, self.snapshot, undo=self.release)
        self._written = began

    def renew(self) -> None:
        """Take the hold again if a quarter of its time is over; cheap enough to be called at every step."""
        if elapsed.seconds() - self._written >= self._seconds / 4:
            self.take()

    def release(self) -> None:
        """Remove the hold unless somebody else took it over; releasing twice is no error."""
        key = hold_key(self.name)
        with suppress(KeyMissing):
            if unseal(self._backend.read(key), key).get("id") == self._id:
                self._backend.delete(key)

    def _write(self) -> None:
        key = hold_key(self.name)
        body = seal(
            {
                "id": self._id,
                "name": self.name,
                "nonce": uuid.uuid4().hex,
                "owner": self._owner,
                "seconds": self._seconds,
                "snapshot": self.snapshot,
            }
        )
        while not conditional.create(self._backend, key, body):
            try:
                before, token = self._backend.read_with_token(key)
                self._check_free(decode_hold(before, key))
                if conditional.replace(self._backend, key, body, before=before, token=token):
                    return
            except KeyMissing:
                continue  # released meanwhile

    def _check_free(self, record: dict[str, Any]) -> None:
        """Refuse to take over a hold on another snapshot that still counts."""
        if record["snapshot"] == self.snapshot:
            return
        info = self._backend.info(hold_key(self.name))
        if info is not None and not _info_of(self.name, record, info.modified).expired(self._backend.now()):
            raise HoldExists(
                f"hold {self.name} keeps snapshot {record['snapshot'][:12]}; choose another name, or release "
                f"it with `cellar hold release {self.name}`"
            )


def list_holds(backend: Backend) -> Iterator[HoldInfo]:
    """Yield all holds, expired ones too, by name; raises `IntegrityError` if one is damaged."""
    for item in backend.list(HOLD_PREFIX):
        if item.key.endswith(_SUFFIX):
            with suppress(KeyMissing):  # released since it was listed
                record = decode_hold(backend.read(item.key), item.key)
                info = backend.info(item.key)  # after its content, so that a renewal meanwhile counts
                if info is not None:
                    name = item.key.removeprefix(HOLD_PREFIX).removesuffix(_SUFFIX)
                    yield _info_of(name, record, info.modified)


def release_hold(backend: Backend, name: str) -> None:
    """Remove a hold, whoever made it; raises `HoldNotFound` if there is none of that name."""
    key = hold_key(check_label(name, "hold"))
    if backend.info(key) is None:
        raise HoldNotFound(f"no hold {name!r} in {backend.url}; `cellar hold ls` shows those that exist")
    backend.delete(key)


def _checked_seconds(seconds: int) -> int:
    if not 0 < seconds <= LONGEST_HOLD_SECONDS:
        raise InputError(
            f"a hold cannot last {seconds} seconds; use 1 second to 366 days, or a tag to keep a snapshot "
            "for good"
        )
    return seconds


def decode_hold(data: bytes, key: str) -> dict[str, Any]:
    """Decode a hold; raises `IntegrityError` if it is damaged or keeps no snapshot for a time."""
    record = unseal(data, key, {"owner": str, "seconds": int, "snapshot": str})
    if not is_digest(record["snapshot"]) or not 0 < record["seconds"] <= LONGEST_HOLD_SECONDS:
        raise IntegrityError(f"{key} does not hold a snapshot for a time; {remedy(key)}")
    return record


def _info_of(name: str, record: dict[str, Any], modified: datetime) -> HoldInfo:
    return HoldInfo(
        name=name,
        snapshot=record["snapshot"],
        owner=record["owner"],
        expires=modified + timedelta(seconds=record["seconds"]),
    )
