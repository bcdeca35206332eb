"""Builds: the writes of one flow run, resumable until one commit makes them visible."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from store.backend import Backend
from store.catalog import Catalog
from store.checkpoint import write_checkpoint_if_due
from store.errors import InputError, IntegrityError, KeyMissing
from store.fetch import fetch_all
from store.format import (
    canonical_json,
    check_digest,
    check_label,
    index_key,
    pack_key,
    part_key,
    parts_prefix,
    plain,
    sha256,
)
from store.lease import Lease
from store.log import PUBLISH, Commit, Draft, Log
from store.pack import TARGET_BYTES
from store.rows import Row, decode_table, encode_rows, rows_of
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
        target_bytes: int = TARGET_BYTES,
    ) -> None:
        self.name = check_label(name, "build")
        self._backend = backend
        self._log = log
        self._catalog = catalog
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
        found: dict[str, Receipt] = {}
        present: dict[str, bool] = {}
        for key, data in zip(keys, fetch_all(self._backend, keys), strict=True):
            try:
                receipt, _ = self._decode(key, data)
            except IntegrityError as error:
                _log.warning("a unit of build %s will be done again: %s", self.name, error)
                continue
            for digest, size in receipt.packs:
                if digest not in present:
                    present[digest] = self._has_pack(digest, size)
            if not all(present[digest] for digest, _ in receipt.packs):
                _log.warning(
                    "unit %s of build %s lacks a pack and will be done again", receipt.unit, self.name
                )
            elif receipt.unit not in found:  # keys are sorted: every process picks the same of two parts
                found[receipt.unit] = receipt
        return found

    def rows(self, receipt: Receipt) -> list[Row]:
        """Return the rows that a receipt stands for, in the order they were added."""
        key = part_key(self.name, receipt.part)
        try:
            stored, rows = self._decode(key, self._backend.read(key))
        except KeyMissing as error:
            raise IntegrityError(
                f"{key} of unit {receipt.unit!r} is missing; run the build again to redo that unit"
            ) from error
        if stored != receipt:
            raise IntegrityError(
                f"the receipt of unit {receipt.unit!r} does not match {key}; run the build again"
            )
        return rows

    def commit(
        self,
        receipts: Iterable[Receipt] | Mapping[str, Receipt],
        *,
        message: str,
        run: Mapping[str, Any] | None = None,
    ) -> Commit:
        """Make exactly the elements of `receipts` visible, in one log entry.

        Checks every part, the counts, and that each pack exists with the right size. Versions that are
        visible already stay where they are. Calling it again with the same receipts returns the first
        commit; if nothing is new, the newest commit that holds any of the elements (or the tip of the log).
        """
        chosen = sorted(
            receipts.values() if isinstance(receipts, Mapping) else receipts,
            key=lambda receipt: (receipt.unit, receipt.part),
        )
        rows: dict[str, Row] = {}
        sizes: dict[str, int] = {}
        for receipt in chosen:
            for row in self.rows(receipt):
                rows.setdefault(row.version, row)
            sizes.update(receipt.packs)
        for digest, size in sizes.items():
            if not self._has_pack(digest, size):
                raise IntegrityError(
                    f"{pack_key(digest)} is missing or cut short; run build {self.name} again"
                )
        identity = sha256(canonical_json(sorted({receipt.part for receipt in chosen})))

        def prepare() -> Draft | Commit:
            for earlier in self._log.commits():
                if (earlier.build, earlier.receipts) == (self.name, identity):
                    return earlier
            self._catalog.refresh()
            new = sorted(
                (row for version, row in rows.items() if version not in self._catalog),
                key=lambda row: (row.name, row.version),
            )
            if not new:
                return self._newest(rows)
            used = {row.pack: sizes[row.pack] for row in new}
            index = encode_rows(new, {"packs": used})
            self._backend.put(index_key(sha256(index)), index)
            return Draft(
                action=PUBLISH,
                message=message,
                run=plain(run or {}),
                build=self.name,
                receipts=identity,
                indexes=(sha256(index),),
                elements=len(new),
                bytes=sum(row.length for row in new),
                packs=len(used),
            )

        commit = self._log.append(prepare)
        self._catalog.refresh()
        write_checkpoint_if_due(self._backend, self._log)
        return commit

    def _newest(self, versions: Iterable[str]) -> Commit:
        visible = self._catalog.get_all(versions)
        newest = max((row.commit for row in visible.values()), default=0)
        return self._log.commits()[newest - 1] if newest else self._log.tip

    def _has_pack(self, digest: str, size: int) -> bool:
        info = self._backend.info(pack_key(digest))
        return info is not None and info.size == size

    def _decode(self, key: str, data: bytes) -> tuple[Receipt, list[Row]]:
        digest = key.rpartition("/")[2].removesuffix(".parquet")
        table, metadata = decode_table(check_digest(data, digest, key, holds="part of a build"), key)
        rows = rows_of(table)
        receipt = Receipt(
            build=self.name,
            unit=metadata["unit"],
            part=digest,
            elements=len(rows),
            bytes=sum(row.length for row in rows),
            packs=tuple(sorted((str(pack), int(size)) for pack, size in metadata["packs"].items())),
            notes=metadata["notes"],
        )
        return receipt, rows
