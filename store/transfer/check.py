"""Checking a whole export of unknown origin before anything of it is believed.

An export is a function of its rows, packs, tag and signatures (`store.transfer.layout`), so every record in
it is known in advance and compared; tables are decoded within limits and must describe, row by row, what the
frames of the packs hold; and there may be nothing else. What passes was made by `export`, or might have been.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.errors import CellarError, IntegrityError
from store.format import FORMAT_KEY, RESTORE, TAG_PREFIX, check_digest
from store.pack import FRAME_BYTES, head_of
from store.parquet import UNREADABLE
from store.rows import Row, decode_table, rows_of, text_bytes
from store.signature import Signature, read_signature
from store.snapshot import open_snapshot, snapshot_id
from store.snapshot_head import footer_of, read_head
from store.sparse import regions_of
from store.transfer.layout import log_of, names_of
from store.transfer.parcel import MAX_PACK_BYTES, Parcel, convey, pack_parcel
from store.verify import Progress, silent

_AGAIN = "get it again from where it was made"
_KIB, _MIB = 1024, 1024**2
_TABLE_FACTOR = 8
"""A row takes less than this many times the bytes of its frame: it repeats names and digests only."""
_REQUIREMENT_BYTES = 66
"""A version between quotes, as a head holds it."""
_SIZE_BYTES = 2
"""The least that one number of a shape takes in a head."""
_DIGEST = r"[0-9a-f]{64}"
_FORMAT, _TAG, _PACK, _INDEX, _TABLE, _HEAD, _LOG, _SIGNATURE = range(8)
_KEYS: tuple[tuple[int, re.Pattern[str], int], ...] = (
    (_FORMAT, re.compile(re.escape(FORMAT_KEY)), 64 * _KIB),
    (_TAG, re.compile(rf"{TAG_PREFIX}([A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})"), 64 * _KIB),
    (_PACK, re.compile(r"packs/([0-9a-f]{2})/(\1[0-9a-f]{62})"), MAX_PACK_BYTES),
    (_INDEX, re.compile(rf"index/({_DIGEST})\.parquet"), 1024 * _MIB),
    (_TABLE, re.compile(rf"snapshots/({_DIGEST})\.parquet"), 1024 * _MIB),
    (_HEAD, re.compile(rf"snapshots/({_DIGEST})\.json"), 64 * _MIB),
    (_LOG, re.compile(r"log/(0{19}[12])\.json"), 64 * _KIB),
    (_SIGNATURE, re.compile(rf"signatures/({_DIGEST})/{_DIGEST}\.json"), 4 * _KIB),
)
"""What an export may hold, and how large it can be."""


@dataclass(frozen=True, slots=True)
class CheckedExport:
    """What an export was found to hold: one snapshot, complete and intact."""

    snapshot: str
    rows: tuple[Row, ...]
    tag: str | None
    signatures: tuple[Signature, ...]
    packs: int
    bytes: int


def check_export(backend: Backend, *, progress: Progress = silent) -> CheckedExport:
    """Check every byte of the export on `backend`.

    Raises `IntegrityError` for the first thing that is not as an export has it, be it damaged or forged.
    """
    try:
        return _Check(backend, progress).run()
    except CellarError as error:
        if str(error).endswith(RESTORE):  # which is advice for a store
            raise type(error)(f"{str(error).removesuffix(RESTORE)}{_AGAIN}") from error
        raise
    except (*UNREADABLE, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise IntegrityError(
            f"{backend.url} holds a record that no export has ({type(error).__name__}); {_AGAIN}"
        ) from error


class _Check:
    """One check; cheap parts come first, so that most of what is wrong shows before packs are read."""

    def __init__(self, backend: Backend, progress: Progress) -> None:
        self._backend = backend
        self._progress = progress
        self._keys: dict[int, list[tuple[str, re.Match[str]]]] = defaultdict(list)
        self._sizes: dict[str, int] = {}

    def run(self) -> CheckedExport:
        """Check everything and return what is there."""
        self._sort_keys()
        [identity] = self._named(_HEAD, "snapshot", 1)
        tags = self._named(_TAG, "tag", 0, 1)
        self._compare(names_of(identity, tags[0] if tags else None))
        rows, packs = self._index(), self._packs()
        [index] = self._named(_INDEX, "index", 1)
        self._compare(log_of(identity, index, rows, packs))
        self._check_snapshot(identity, rows)
        signatures = tuple(read_signature(self._backend, key, identity) for key, _ in self._keys[_SIGNATURE])
        self._check_packs(packs, rows)
        return CheckedExport(
            identity, tuple(rows), tags[0] if tags else None, signatures, len(packs), sum(packs.values())
        )

    def _sort_keys(self) -> None:
        for item in self._backend.list(""):
            for kind, form, most in _KEYS:
                match = form.fullmatch(item.key)
                if match is None:
                    continue
                if item.size > most:
                    raise self._refused(item.key, f"is larger than it can be ({item.size:,} bytes)")
                self._keys[kind].append((item.key, match))
                self._sizes[item.key] = item.size
                break
            else:
                raise self._refused(item.key, "is nothing that an export holds")

    def _named(self, kind: int, noun: str, *counts: int) -> list[str]:
        """Return what the keys of a kind name, of which there may be so many."""
        found = [match[1] for _, match in self._keys[kind]]
        if len(found) not in counts:
            raise self._refused(self._backend.url, f"holds {len(found)} of what it has one of: {noun}")
        return found

    def _compare(self, records: Mapping[str, bytes]) -> None:
        """Check that the records are there and say what they must."""
        for key, expected in records.items():
            if self._sizes.get(key) != len(expected) or self._backend.read(key) != expected:
                raise self._refused(key, "is missing or says something else than this export's contents")

    def _table(self, kind: int, noun: str, metadata: object) -> tuple[bytes, list[Row]]:
        """Decode the one table of a kind; return it as it is stored, and its rows by name.

        Its metadata is known; and it says no more than the heads of frames in the packs, since a few bytes
        may stand for very many equal rows, or for very much text. That shows before any text is decoded.
        """
        [digest] = self._named(kind, noun, 1)
        key = self._keys[kind][0][0]
        data = check_digest(self._backend.read(key), digest, key, holds=noun)
        size = sum(self._packs().values())
        table, found = decode_table(data, key, most=_TABLE_FACTOR * size + _MIB)
        if found != metadata or not len(table):
            raise self._refused(key, "tells of other packs than there are")
        if _framed_bytes(table) > size:
            raise self._refused(key, "says more than its packs can hold")
        return data, sorted(rows_of(table), key=lambda row: (row.name, row.version))

    def _packs(self) -> dict[str, int]:
        return {match[2]: self._sizes[key] for key, match in self._keys[_PACK]}

    def _index(self) -> list[Row]:
        """Return the rows of the index, each of which describes a version of its own."""
        packs = self._packs()
        _, rows = self._table(_INDEX, "index", {"packs": packs})
        key = self._keys[_INDEX][0][0]
        if {row.pack for row in rows} != packs.keys():
            raise self._refused(key, "tells of other packs than there are")
        names = Counter(row.name for row in rows)
        versions = {row.version for row in rows}
        for row in rows:
            if not row.is_authentic() or row.commit:
                raise self._refused(key, f"describes {row.name} in a way that its version denies")
            if names[row.name] > 1:
                raise self._refused(key, f"holds {row.name} twice")
            for version in row.requires:
                if version not in versions:
                    raise IntegrityError(
                        f"{row.name} requires version {version[:12]}, which {self._backend.url} lacks; get a "
                        "complete export"
                    )
        return rows

    def _check_snapshot(self, identity: str, rows: Sequence[Row]) -> None:
        """Check both files of the snapshot, as a whole and as a reader of single rows sees them."""
        data, pinned = self._table(_TABLE, "rows of the snapshot", {"snapshot": True})
        head = read_head(self._backend, identity)
        key = self._keys[_HEAD][0][0]
        groups, footer = regions_of(data)
        regions = [[region.offset, region.length, region.digest] for region in (*groups, footer)]
        if [*(group[2:] for group in head["groups"]), head["footer"]] != regions or footer_of(head) not in (
            None,
            data[footer.offset :],
        ):
            raise self._refused(key, "says that its rows lie elsewhere than they do")
        snapshot = open_snapshot(self._backend, identity)
        expected = [_described(row) for row in rows]
        if (
            [_described(row) for row in pinned] != expected
            or [_described(row) for row in snapshot.rows()] != expected
            or snapshot_id((row.name, row.version) for row in rows) != identity
        ):
            raise self._refused(key, "is not the snapshot of the elements in the index")
        kinds = Counter(row.kind for row in rows)
        figures = (len(rows), sum(row.length for row in rows), dict(kinds))
        if (snapshot.count, snapshot.bytes, snapshot.kinds) != figures:
            raise self._refused(key, "counts other elements than it holds")

    def _check_packs(self, packs: Mapping[str, int], rows: Sequence[Row]) -> None:
        members: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            members[row.pack].append(row)
        parcels = [Parcel(pack, size, tuple(members[pack])) for pack, size in packs.items()]
        done, total = 0, sum(packs.values())
        for parcel, _ in convey(parcels, lambda parcel: pack_parcel(self._backend, parcel).digest):
            done += parcel.size
            self._progress(done, total)

    def _refused(self, key: str, problem: str) -> IntegrityError:
        return IntegrityError(
            f"{key} {problem}, so {self._backend.url} is damaged or was not made by "
            f"`cellar snapshot export`; {_AGAIN}"
        )


def _framed_bytes(table: pa.Table) -> int:
    """Return the least that the frames of these rows take in packs: each head repeats what its row says."""
    lists = ((_REQUIREMENT_BYTES, table["requires"]), (_SIZE_BYTES, table["shape"]))
    text: int = pc.sum(text_bytes(table)).as_py()
    return (
        text + FRAME_BYTES * len(table) + sum(least * len(pc.list_flatten(column)) for least, column in lists)
    )


def _described(row: Row) -> tuple[object, ...]:
    """All that a row says, so that equal means equal: in Python, 1 and True and 1.0 are."""
    return head_of(row), row.version, row.pack, row.offset
