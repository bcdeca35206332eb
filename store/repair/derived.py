"""Derived data made again: directories, blocks of history, checkpoints and the segments that they introduced.

A checkpoint follows from the log up to its entry and from the checkpoint before it. So a lost one, or a lost
segment, is made again by writing a checkpoint into an imitation of the store as it was then: only if the very
same name comes out, the bytes are the right ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from store.backend import Backend
from store.checkpoint import objects_of, write_checkpoint
from store.directory import read_section
from store.errors import CellarError, IntegrityError
from store.format import (
    CHECKPOINT_PREFIX,
    bundle_key,
    directory_key,
    history_key,
    index_key,
    log_key,
    sha256,
)
from store.history import encode_block
from store.index import LISTED, directory_of
from store.repair.past import PastBackend, sequence_of
from store.repair.report import Repaired
from store.rows import decode_table
from store.store import Store
from store.verify.checkpoints import digest_in
from store.verify.inspection import Inspection

_BASES = 3
"""How many checkpoints before a lost one are tried as the one that its writer started from."""


def repair_directories(inspection: Inspection, hurt: Collection[str]) -> Iterator[Repaired]:
    """Make directories of intact index files again."""
    backend = inspection.survey.backend
    for key in sorted(key for key in hurt if key.endswith(".keys")):
        digest = digest_in(key)
        if key == directory_key(digest) and digest in inspection.tables.intact:
            data = backend.read(index_key(digest))
            table, metadata = decode_table(data, index_key(digest))
            backend.put(key, directory_of(data, table.select(LISTED), metadata["packs"]))
            yield Repaired(key, "made again from its index file")


def repair_bundles(inspection: Inspection, hurt: Collection[str]) -> Iterator[Repaired]:
    """Make bundles of key tables again from the directories that these are in."""
    backend = inspection.survey.backend
    for checkpoint in inspection.derived.checkpoints:
        leads = {segment.index: segment.lead for segment in checkpoint.segments}
        for bundle in checkpoint.bundles:
            key = bundle_key(bundle.digest)
            if key in hurt:
                try:
                    tables = [
                        read_section(backend, index, lead.version_keys)
                        for index in bundle.members
                        if (lead := leads.get(index)) is not None
                    ]
                except CellarError:
                    continue  # a directory is lost too: the next round may have it
                if sha256(b"".join(tables)) == bundle.digest:
                    backend.put(key, b"".join(tables))
                    yield Repaired(key, "made again from directories")


def repair_history(inspection: Inspection, hurt: Collection[str]) -> Iterator[Repaired]:
    """Make blocks of history again from the entries that they copy."""
    backend = inspection.survey.backend
    for block in inspection.derived.blocks.values():
        key = history_key(block.digest)
        numbers = range(block.first, block.last + 1)  # forged, there may be very many
        if key in hurt and all(number in inspection.history.commits for number in numbers):
            try:
                entries = [backend.read(log_key(n)) for n in numbers]
                made, data = encode_block(block.first, entries)
            except CellarError:
                continue  # an entry is damaged, and known from elsewhere only
            if made.digest == block.digest:
                backend.put(key, data)
                yield Repaired(key, "made again from the log")


def repair_checkpoints(inspection: Inspection, hurt: Collection[str]) -> Iterator[Repaired]:
    """Make checkpoints and the segments that they introduced again, the oldest first."""
    intact = {checkpoint.key: checkpoint for checkpoint in inspection.derived.checkpoints}
    keys = [key for key in inspection.survey.keys(CHECKPOINT_PREFIX) if sequence_of(key)]
    for key in sorted(keys, key=sequence_of):
        lost = {key, *(objects_of(intact[key]) if key in intact else ())}.intersection(hurt)
        if lost:
            made = _imitate(inspection.survey.backend, key, keys)
            for name in sorted(lost & made.keys()):
                inspection.survey.backend.put(name, made[name])
                yield Repaired(name, "made again as it was made first")


def write_newest(backend: Backend) -> list[Repaired]:
    """Write a checkpoint of the store as it is now, so that opening it needs nothing that was damaged."""
    try:
        store = Store(backend)
        checkpoint = write_checkpoint(backend, store.history, store.catalog())
    except IntegrityError:  # more is lost than could be replaced, so it does not open
        return []
    return [Repaired(checkpoint.key, "written anew")]


def _imitate(backend: Backend, key: str, keys: list[str]) -> dict[str, bytes]:
    """Return everything that was written with the checkpoint `key`, nothing if it cannot be made again."""
    sequence = sequence_of(key)
    earlier = sorted(number for number in map(sequence_of, keys) if number < sequence)
    bases = [*earlier[: -_BASES - 1 : -1], 0]
    for base in bases:
        for without_dead in (False, True):
            past = PastBackend(backend, sequence, base)
            try:
                store = Store(past)
                write_checkpoint(past, store.history, store.catalog(), without_dead=without_dead)
            except CellarError:
                continue
            if key in past.written:
                return past.written
    return {}
