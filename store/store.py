"""`Store`: the door to everything that is kept in one bucket or folder."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self

from store import conditional
from store.backend import Backend, open_backend
from store.backend.cached import CachedBackend
from store.backend.read_only import ReadOnlyBackend
from store.build import Build
from store.cache import ReadCache
from store.catalog import Catalog
from store.claims import Claim
from store.doctor import probe
from store.element import Element, Ref
from store.errors import (
    ElementNotFound,
    IntegrityError,
    KeyMissing,
    NotAStore,
    StoreExists,
    UnsupportedFormat,
)
from store.fetch import read_payload
from store.format import (
    DOCTOR_PREFIX,
    EXPORT,
    FORMAT_KEY,
    FORMAT_VERSION,
    HEAD_PREFIX,
    TAG_PREFIX,
    canonical_json,
    check_fields,
    check_label,
    encode_format,
    sha256,
    unseal,
)
from store.holds import HOLD_SECONDS, Hold, HoldInfo, list_holds, release_hold
from store.log import Commit, Log
from store.pack import TARGET_BYTES
from store.pin import pin
from store.pinned import PinnedSnapshot, pinned_snapshots
from store.positions import LONGEST_BY, MOVE, Note, Position
from store.refs import list_refs, make_tag, move_head, read_positions, read_ref, resolve
from store.rows import Row
from store.snapshot import Snapshot, open_snapshot
from store.stream import stream_payloads
from store.verify import Progress, VerifyReport, silent, verify


class Store:
    """A versioned store of elements. One instance may be used by several threads.

    Open one with `Store.open`, `Store.create` or `Store.open_or_create`; all take a folder, `file:/path` or
    `s3://bucket/prefix`.
    """

    def __init__(
        self, backend: Backend, *, run: Mapping[str, Any] | None = None, cache: ReadCache | None = None
    ) -> None:
        """Open the store on `backend`; raises `NotAStore` or `UnsupportedFormat`.

        `run` says where and why the caller works; every commit made through this instance records it. `cache`
        keeps payloads and rows of snapshots that were read; maintenance reads past it. An export opens too,
        and raises `ReadOnly` where it is to be written.
        """
        self._run = dict(run or {})
        origin, features = _read_format(backend)
        self._backend = ReadOnlyBackend(backend) if EXPORT in features else backend
        self._reading = CachedBackend(self._backend, cache) if cache else self._backend
        self._log = Log(self._backend, origin)
        self._catalog = Catalog(self._backend, self._log)

    @classmethod
    def open(cls, url: str, *, run: Mapping[str, Any] | None = None, cache: ReadCache | None = None) -> Self:
        """Open an existing store; raises `NotAStore` if there is none at `url`. For the rest see `Store`."""
        return cls(open_backend(url), run=run, cache=cache)

    @classmethod
    def create(cls, url: str) -> Self:
        """Create an empty store; raises `StoreExists` if it is one, `NotAStore` if the place is in use."""
        backend = open_backend(url)
        if not create_format(backend):
            raise StoreExists(f"{backend.url} already is a store; open it instead")
        return cls(backend)

    @classmethod
    def open_or_create(
        cls, url: str, *, run: Mapping[str, Any] | None = None, made: Callable[[str], None] | None = None
    ) -> Self:
        """Open the store at `url`, creating it first if nothing is there. For the rest see `Store`.

        `made` is told the address of a store that was created.
        """
        backend = open_backend(url)
        if create_format(backend) and made is not None:
            made(backend.url)
        return cls(backend, run=run)

    @property
    def url(self) -> str:
        """Where the store is; never holds credentials."""
        return self._backend.url

    @property
    def backend(self) -> Backend:
        """The storage underneath, without any cache, for maintenance tools."""
        return self._backend

    @property
    def history(self) -> Log:
        """The log underneath, for maintenance tools."""
        return self._log

    @property
    def run(self) -> dict[str, Any]:
        """What every commit made through this instance records about where and why."""
        return dict(self._run)

    def build(self, name: str, *, owner: str, target_bytes: int = TARGET_BYTES) -> Build:
        """Open a build and take its lease; the same `name` finds the units that an earlier run finished.

        `owner` says who builds (host, run); it is only recorded. `target_bytes` is the size at which a pack
        is closed.
        """
        return Build(
            self._backend,
            self._log,
            self._catalog,
            name,
            owner=owner,
            run=self._run,
            target_bytes=target_bytes,
        )

    def publish(
        self, elements: Iterable[Element], *, message: str, run: Mapping[str, Any] | None = None
    ) -> list[Ref]:
        """Publish a few elements in one commit and return their references in order.

        Versions that are visible already are not written again, and nothing is committed if none is new.
        """
        given = list(elements)
        catalog = self.catalog()
        known = catalog.known(element.version for element in given)
        new = {element.version: element for element in given if element.version not in known}
        if new:
            name = f"publish-{sha256(canonical_json(sorted(new)))[:40]}"
            build = self.build(name, owner=message)
            receipt = build.receipts().get("publish")
            if receipt is None:
                with build.writer("publish") as writer:
                    for element in new.values():
                        writer.add(element)
                    receipt = writer.finish()
            build.commit([receipt], message=message, run=run)
        return [element.ref for element in given]

    def catalog(self) -> Catalog:
        """Return the catalog, brought up to date: one request if nothing was committed since.

        It is one object per store, so an earlier reference to it sees later refreshes too.
        """
        self._catalog.refresh()
        return self._catalog

    def read(self, what: Row | Ref) -> bytes:
        """Return a payload by one ranged read, checked against its SHA-256.

        Raises `ElementNotFound` if a reference is not visible and `IntegrityError` if the bytes are damaged.
        """
        if isinstance(what, Row):
            return read_payload(self._reading, what)
        row = self._locate(what)
        try:
            return read_payload(self._reading, row)
        except IntegrityError:
            self._catalog.refresh()  # what was removed or moved since is not damaged
            moved = self._locate(what)
            if moved == row:
                raise
            return read_payload(self._reading, moved)

    def stream(self, rows: Iterable[Row]) -> Generator[tuple[Row, bytes], None, None]:
        """Yield rows with their checked payloads in pack order, several ranges read ahead."""
        ordered = sorted(rows, key=lambda row: (row.pack, row.offset, row.name))
        return stream_payloads(self._reading, ordered)

    def pin(self, refs: Iterable[Ref], *, message: str, run: Mapping[str, Any] | None = None) -> Snapshot:
        """Pin an exact set of versions that holds all its requirements; see `store.pin.pin`.

        `run` is recorded beside what the store's own `run` says.
        """
        recorded = {**self._run, **(run or {})}
        return pin(self._backend, self._log, self._catalog, refs, message=message, run=recorded)

    def snapshot(self, spec: str) -> Snapshot:
        """Open a snapshot by id, unique prefix of at least 8 digits, tag or head (`tag:x`, `head:x`)."""
        return open_snapshot(self._reading, resolve(self._backend, spec))

    def snapshots(self) -> list[PinnedSnapshot]:
        """Return the snapshots that are there with their sizes, in the order in which they were pinned."""
        self._log.refresh()
        return list(pinned_snapshots(self._backend, self._log))

    def tag(self, name: str, snapshot_id: str) -> None:
        """Create a tag; raises `TagExists` if it names another snapshot, since tags never move."""
        make_tag(self._backend, self._log, self._catalog, name, snapshot_id, run=self._run)

    def tags(self, *, damaged: Callable[[IntegrityError], None] | None = None) -> dict[str, str]:
        """Return all tags with their snapshot ids; `damaged` is told of damaged ones, else they raise."""
        return list_refs(self._backend, TAG_PREFIX, damaged=damaged)

    def head(self, name: str) -> str | None:
        """Return the snapshot id that a head points to, None if there is no such head."""
        return read_ref(self._backend, HEAD_PREFIX + check_label(name, "head"))

    def heads(self, *, damaged: Callable[[IntegrityError], None] | None = None) -> dict[str, str]:
        """Return all heads with their snapshot ids; `damaged` is told of damaged ones, else they raise."""
        return list_refs(self._backend, HEAD_PREFIX, damaged=damaged)

    def move_head(
        self,
        name: str,
        snapshot_id: str,
        *,
        expect: str | None,
        action: str = MOVE,
        why: str = "",
        evaluation: str = "",
    ) -> None:
        """Move a head if it points to `expect` (None: if it is new); raises `HeadMoved` otherwise.

        Its record remembers `action` and `why`, a reference to the `evaluation` that it was judged by, and
        the user and machine that this store's run names. Raises `InputError` if one of these is too long.
        """
        by = "{user}@{host}".format_map(self._run) if {"user", "host"} <= self._run.keys() else ""
        note = Note(action=action, by=by[:LONGEST_BY], why=why, evaluation=evaluation)
        move_head(
            self._backend,
            self._log,
            self._catalog,
            name,
            snapshot_id,
            expect=expect,
            note=note,
            run=self._run,
        )

    def head_log(self, name: str) -> tuple[Position, ...]:
        """Return where a head pointed, oldest first, now last; raises `SnapshotNotFound` without such a head.

        A head remembers its last 100 positions, and of each who moved it there and why.
        """
        return read_positions(self._backend, name)

    def hold(self, name: str, snapshot_id: str, *, owner: str = "", seconds: int = HOLD_SECONDS) -> Hold:
        """Keep a snapshot alive under a name, usually that of a run, while the context lasts.

        It counts for `seconds` from its last write, so call `renew` now and then in longer work. Entering
        raises `HoldExists` if the name keeps another snapshot, `SnapshotNotFound` if there is none.
        """
        return Hold(
            self._backend,
            self._log,
            self._catalog,
            name,
            snapshot_id,
            owner=owner,
            run=self._run,
            seconds=seconds,
        )

    def claim(self, name: str, *, owner: str) -> Claim:
        """Return the claim on what `name` stands for, usually a head; entering it raises `ClaimHeld`."""
        return Claim(self._backend, name, owner=owner)

    def holds(self) -> list[HoldInfo]:
        """Return all holds by name, those that no longer count too."""
        return list(list_holds(self._backend))

    def release_hold(self, name: str) -> None:
        """Remove a hold, whoever made it; raises `HoldNotFound` if there is none of that name."""
        release_hold(self._backend, name)

    def tip(self) -> Commit:
        """Return the newest commit; in an empty store its creation, number 0."""
        self._log.refresh()
        return self._log.tip

    def log(self) -> Iterator[Commit]:
        """Yield all commits, oldest first."""
        self._log.refresh()
        yield from self._log.commits()

    def verify(self, *, full: bool = False, progress: Progress = silent) -> VerifyReport:
        """Check the structure of the store, and every stored byte if `full`; see `store.verify`."""
        return verify(self._backend, full=full, progress=progress)

    def _locate(self, ref: Ref) -> Row:
        row = self._catalog.get(ref.version) or self.catalog().get(ref.version)
        if row is None or row.name != ref.name:
            raise ElementNotFound(
                f"{ref.name}@{ref.version[:12]} is not in {self.url}; check the reference or publish it first"
            )
        return row


def create_format(backend: Backend) -> bool:
    """Make an empty store on `backend`; False if it is one already, `NotAStore` if other things are there.

    Raises `ConfigurationError` if the server does not enforce conditional writes: such a store would lose
    commits.
    """
    if _exists(backend):
        return False
    foreign = (item for item in backend.list("") if not item.key.startswith(DOCTOR_PREFIX))
    if next(foreign, None) is not None and not _exists(backend):
        raise NotAStore(
            f"{backend.url} holds other files and no {FORMAT_KEY}; choose an empty place for a store"
        )
    if backend.url.startswith("s3:"):  # the links and locks of a folder are the kernel's own
        probe(backend)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return conditional.create(backend, FORMAT_KEY, encode_format(store=uuid.uuid4().hex, created=now))


def _exists(backend: Backend) -> bool:
    try:
        backend.read(FORMAT_KEY)
    except KeyMissing:
        return False
    return True


def _read_format(backend: Backend) -> tuple[Commit, list[str]]:
    """Check that this version can read the store; return its creation as commit 0, and its features."""
    try:
        data = backend.read(FORMAT_KEY)
    except KeyMissing as error:
        raise NotAStore(f"there is no store at {backend.url}; create one with `cellar init`") from error
    record = unseal(data, FORMAT_KEY, {"features": list, "format": int})
    if record["format"] != FORMAT_VERSION or record["features"] not in ([], [EXPORT]):
        raise UnsupportedFormat(
            f"{backend.url} has format {record['format']} {record['features']}, this version reads format "
            f"{FORMAT_VERSION}; use the version of cellar that wrote it"
        )
    check_fields(record, FORMAT_KEY, {"created": str, "store": str})
    origin = Commit(
        sequence=0,
        digest=sha256(data),
        id=record["store"],
        action="create",
        message="create the store",
        time=record["created"],
    )
    return origin, record["features"]
