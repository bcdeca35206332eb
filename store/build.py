"""Builds: the writes of one flow run, resumable until one commit makes them visible."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.catalog import Catalog
from store.checkpoint import write_checkpoint_if_due
from store.errors import ConflictError, InputError, IntegrityError, KeyMissing
from store.fetch import fetch_all, sizes_of
from store.format import (
    canonical_json,
    check_digest,
    check_label,
    pack_key,
    part_key,
    parts_prefix,
    plain,
    sha256,
)
from store.index import encode_index, write_index
from store.lease import Lease
from store.log import PUBLISH, Commit, Draft, Log
from store.pack import TARGET_BYTES
from store.parallel import in_parallel
from store.rows import SCHEMA, Row, decode_table, iter_rows, rows_of
from store.visibility import sorted_rows
from store.writer import Receipt, Writer

_MAX_UNIT = 256
_log = logging.getLogger(__name__)


class Build:
    """One named build. Any number of processes may write units of it; one of them commits.

    The name should follow from the inputs of the work, so that a rerun after a kill finds what the killed
    run had finished. Obtain one from `Store.build`.
    """

    def __init__(
        self,
        backend: Backend,
        log: Log,
        catalog: Catalog,
        name: str,
        *,
        owner: str,
        run: Mapping[str, Any] | None = None,
        target_bytes: int = TARGET_BYTES,
    ) -> None:
        self.name = check_label(name, "build")
        self._backend = backend
        self._log = log
        self._catalog = catalog
        self._run = dict(run or {})
        self._target = target_bytes
        self._lease = Lease(backend, name, owner)
        self._lease.hold()

    def writer(self, unit: str) -> Writer:
        """Open a writer for one unit of work; the unit's name is how a rerun recognises it."""
        if not unit or len(unit) > _MAX_UNIT or not unit.isprintable():
            raise InputError(
                f"unit name {unit[:80]!r} is not valid; use 1 to {_MAX_UNIT} printable characters"
            )
        return Writer(self._backend, self.name, unit, renew=self._lease.hold, target_bytes=self._target)

    def receipts(self) -> dict[str, Receipt]:
        """Return what earlier runs of this build finished, by unit.

        A part counts only if its bytes are intact and every pack it names exists with the right size; others
        are logged and left out, so that the unit is done again.
        """
        keys = [item.key for item in self._backend.list(parts_prefix(self.name))]
        parts: list[Receipt] = []
        for key, data in zip(keys, in_parallel(self._backend, self._read_if_there, keys), strict=True):
            if data is None:
                continue
            try:
                parts.append(self._decode(key, data)[0])
            except IntegrityError as error:
                _log.warning("a unit of build %s will be done again: %s", self.name, error)
        lacking = self._lacking_packs({digest: size for part in parts for digest, size in part.packs})
        found: dict[str, Receipt] = {}
        for part in sorted(parts, key=lambda part: part.part):
            if any(digest in lacking for digest, _ in part.packs):
                _log.warning("unit %s of build %s lacks a pack and will be done again", part.unit, self.name)
            else:
                found.setdefault(part.unit, part)  # every process picks the same of two parts
        return found

    def rows(self, receipt: Receipt) -> list[Row]:
        """Return the rows that a receipt stands for, in the order they were added."""
        return rows_of(self._read_parts([receipt])[0])

    def commit(
        self,
        receipts: Iterable[Receipt] | Mapping[str, Receipt],
        *,
        message: str,
        run: Mapping[str, Any] | None = None,
    ) -> Commit:
        """Make exactly the elements of `receipts` visible, in one log entry.

        Checks every part, the counts, and that each pack exists with the right size. Versions that are
        visible already stay where they are, unless their pack is condemned. If nothing is new, as when the
        same receipts are committed again, returns the newest commit that made any of the elements visible
        (or the tip of the log). Raises `ConflictError` while a pack of the build is being removed.
        """
        chosen = sorted(
            receipts.values() if isinstance(receipts, Mapping) else receipts,
            key=lambda receipt: (receipt.unit, receipt.part),
        )
        parts = self._read_parts(chosen)
        table = _first_of_each(pa.concat_tables([SCHEMA.empty_table(), *parts]))
        versions = table["version"].to_pylist()
        sizes = {digest: size for receipt in chosen for digest, size in receipt.packs}
        identity = sha256(canonical_json(sorted({receipt.part for receipt in chosen})))
        looked_at = self._log.tip.sequence  # may be behind, so that more is checked again than needed
        self._check_packs(sizes)

        def prepare() -> Draft | Commit:
            nonlocal looked_at
            self._catalog.catch_up()
            known = self._catalog.known(versions)
            new = table.filter(pa.array([version not in known for version in versions], pa.bool_()))
            if not len(new):
                newest = self._catalog.newest_commit(versions)
                return self._log.at(newest) if newest else self._log.tip
            removals = self._catalog.removals
            used = {pack: sizes[pack] for pack in sorted(new["pack"].unique().to_pylist())}
            dying = next((pack for pack in used if pack in removals.dying.packs), None)
            if dying is not None:
                raise ConflictError(
                    f"{pack_key(dying)}, which build {self.name} wrote, is being removed at this moment; run "
                    "again when `cellar gc` has finished"
                )
            if removals.changed_at > looked_at:
                self._check_packs(used)
                looked_at = self._log.tip.sequence
            index = encode_index(sorted_rows(new), used)
            write_index(self._backend, index)
            return Draft(
                action=PUBLISH,
                message=message,
                run=plain({**self._run, **(run or {})}),
                build=self.name,
                receipts=identity,
                indexes=(index.digest,),
                elements=len(new),
                bytes=pc.sum(new["length"]).as_py(),
                packs=len(used),
            )

        commit = self._log.append(prepare)
        self._catalog.catch_up()
        write_checkpoint_if_due(self._backend, self._log, self._catalog, commit)
        return commit

    def _read_if_there(self, key: str) -> bytes | None:
        """Return a part, None if it was removed since it was listed: the build had been over."""
        try:
            return self._backend.read(key)
        except KeyMissing:
            return None

    def _check_packs(self, sizes: Mapping[str, int]) -> None:
        for digest in self._lacking_packs(sizes):
            raise IntegrityError(f"{pack_key(digest)} is missing or cut short; run build {self.name} again")

    def _lacking_packs(self, sizes: Mapping[str, int]) -> set[str]:
        """Return those packs that are missing or have another size than in `sizes`."""
        found = sizes_of(self._backend, [pack_key(digest) for digest in sizes])
        return {digest for digest, size in zip(sizes, found, strict=True) if size != sizes[digest]}

    def _read_parts(self, receipts: Sequence[Receipt]) -> list[pa.Table]:
        keys = [part_key(self.name, receipt.part) for receipt in receipts]
        try:
            files = fetch_all(self._backend, keys)
        except KeyMissing as error:
            raise IntegrityError(f"a part of build {self.name} is missing; run the build again") from error
        tables = []
        for receipt, key, data in zip(receipts, keys, files, strict=True):
            stored, table = self._decode(key, data)
            if stored != receipt:
                raise IntegrityError(
                    f"the receipt of unit {receipt.unit!r} is not that of {key}; build again"
                )
            tables.append(table)
        return tables

    def _decode(self, key: str, data: bytes) -> tuple[Receipt, pa.Table]:
        digest = key.rpartition("/")[2].removesuffix(".parquet")
        table, metadata = decode_table(check_digest(data, digest, key, holds="part of a build"), key)
        for row in iter_rows(table):  # all rows of a large build as objects would fill the memory
            if not row.is_authentic():
                raise IntegrityError(
                    f"{key} describes {row.name} in a way that its version denies; run the build again"
                )
        receipt = Receipt(
            build=self.name,
            unit=metadata["unit"],
            part=digest,
            elements=len(table),
            bytes=pc.sum(table["length"]).as_py() or 0,
            packs=tuple(sorted((str(pack), int(size)) for pack, size in metadata["packs"].items())),
            notes=metadata["notes"],
        )
        return receipt, table


def _first_of_each(table: pa.Table) -> pa.Table:
    """Return the first row of each version."""
    first = {version: n for n, version in reversed(list(enumerate(table["version"].to_pylist())))}
    return table if len(first) == len(table) else table.take(pa.array(sorted(first.values()), pa.int64()))
