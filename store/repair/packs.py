"""Packs made again from the elements in them, if the very same bytes come out."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.element import Element
from store.errors import CellarError
from store.fetch import read_payload
from store.format import BUILD_PREFIX, PACK_PREFIX, index_key, pack_key
from store.pack import PackBuilder
from store.repair.report import Repaired
from store.rows import Row, decode_batches, iter_rows
from store.store import Store
from store.verify.inspection import Inspection


def repair_packs(inspection: Inspection, hurt: Collection[str], source: Backend | None) -> Iterator[Repaired]:
    """Make damaged or missing packs again, with what is intact of them and the elements that `source` has.

    An export may hold the elements in other packs, so the packs themselves cannot be copied from there.
    """
    keys = {key for key in hurt if key.startswith(PACK_PREFIX)}
    if not keys or source is None:
        return
    backend, store = inspection.survey.backend, Store(source)
    for pack, rows in _rows_in(inspection, {key.rpartition("/")[2] for key in keys}).items():
        try:
            data = _rebuilt(backend, store, pack, rows)
        except CellarError:
            continue  # an element is nowhere intact
        if data:
            backend.put(pack_key(pack), data)
            yield Repaired(pack_key(pack), f"made again with elements from {source.url}")


def _rebuilt(backend: Backend, source: Store, pack: str, rows: list[Row]) -> bytes:
    """Return the pack of `rows`; nothing if other bytes come out."""
    elsewhere = source.catalog().get_all(row.version for row in rows)
    builder = PackBuilder()
    for row in sorted(rows, key=lambda row: row.offset):
        try:
            payload = read_payload(backend, row)
        except CellarError:
            payload = read_payload(source.backend, elsewhere.get(row.version, row))
        builder.add(
            Element(
                kind=row.kind,
                name=row.name.partition("/")[2],
                payload=payload,
                media=row.media,
                requires=row.requires,
                provenance=row.provenance,
                facts=row.facts,
            )
        )
    sealed = builder.seal()
    return bytes(sealed.data) if sealed.digest == pack else b""


def _rows_in(inspection: Inspection, packs: set[str]) -> dict[str, list[Row]]:
    """Return all rows that intact index files and parts have in each of `packs`, each place once."""
    found: dict[str, dict[int, Row]] = {pack: {} for pack in sorted(packs)}
    wanted = pa.array(sorted(packs), pa.string())
    survey = inspection.survey
    damaged = {finding.key for finding in inspection.report.findings}
    keys = [index_key(digest) for digest in sorted(inspection.tables.intact)]
    keys += [key for key in survey.keys(BUILD_PREFIX, ".parquet") if key not in damaged]
    for key in keys:
        for table in decode_batches(survey.read(key), key)[1]:
            for row in iter_rows(table.filter(pc.is_in(table["pack"], value_set=wanted))):
                found[row.pack][row.offset] = row
    return {pack: list(rows.values()) for pack, rows in found.items() if rows}
