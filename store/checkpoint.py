"""Writing checkpoints: merge what recent commits added, and say where everything is.

A checkpoint is due when commits after the last one are many or have many rows. Their index files are merged
into one segment, which is merged with the last segments before it while these are at most twice as large: so
there are few segments, their sizes fall by halves, and a row is rewritten a number of times that grows with
the logarithm of the store's size. Blocks of history are merged in the same way.

Everything here is derived data. The commit that made a checkpoint due is visible already, so a failure is
logged and left to a later committer. Committers that write the same checkpoint write the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from store.backend import Backend
from store.catalog import Catalog
from store.directory import read_section
from store.entry import Commit
from store.errors import CellarError, IntegrityError
from store.format import bundle_key, directory_key, history_key, index_key, sha256
from store.history import Block, encode_block
from store.index import IndexBuilder, write_index
from store.log import Log
from store.manifest import Bundle, Checkpoint, Segment, encode_checkpoint
from store.removals import Removals
from store.rows import SCHEMA
from store.source import Source, in_order
from store.visibility import living, one_per_pack

BLOCK = 8
"""Commits after which a checkpoint is due, however few rows they have."""
ROWS = 4096
"""Rows after which a checkpoint is due, however few commits they are of."""
FINAL_ROWS = 65_536
"""A segment of this many rows is not merged any more."""
_FINAL_ENTRIES = 8192
_BUNDLED = 16
_FACTOR = 2
_log = logging.getLogger(__name__)


def write_checkpoint_if_due(backend: Backend, log: Log, catalog: Catalog, commit: Commit) -> None:
    """Write a checkpoint if `commit`, which was just made, made one due; a failure is only logged."""
    if not _is_due(log.recent(), commit):
        return
    try:
        log.look_for_checkpoint()
        if _is_due(log.recent(), commit):
            write_checkpoint(backend, log, catalog)
    except CellarError as error:
        _log.warning("a checkpoint of %s was not written, a later commit will: %s", backend.url, error)


def write_checkpoint(
    backend: Backend, log: Log, catalog: Catalog, *, without_dead: bool = False
) -> Checkpoint:
    """Write a checkpoint up to the tip of the log that was read, start from it, and return it.

    With `without_dead` no segment of it holds a row that was collected. What the last checkpoint lost is made
    from an older one, in the end from the log. Raises `IntegrityError` if what the log itself names is
    damaged.
    """
    while True:
        with log.lock:
            catalog.catch_up()
            base, tip, removals, plain = log.checkpoint, log.tip, catalog.removals, catalog.plain
            entries, sources = log.recent_entries(), catalog.sources
        try:
            segments = []
            for group in _plan(sources, base.sequence):
                if len(group) == 1 and not _must_change(group[0], removals, without_dead=without_dead):
                    segments.append(group[0].segment)
                else:
                    segments += _merge(backend, group, removals)
            bundles = tuple(_bundle(backend, base, segments))
            break
        except IntegrityError as error:
            catalog.fall_back(base, error)
    checkpoint = Checkpoint(
        sequence=tip.sequence,
        tip=tip.digest,
        segments=tuple(segments),
        bundles=bundles,
        history=tuple(_extend_history(backend, log, base, entries)),
        removals=replace(removals, dead={}) if without_dead else removals,
        plain=plain,
    )
    key, data = encode_checkpoint(checkpoint)
    backend.put(key, data)
    checkpoint = replace(checkpoint, key=key)
    log.adopt(checkpoint)
    catalog.catch_up()
    return checkpoint


def objects_of(checkpoint: Checkpoint) -> set[str]:
    """Return the keys of all objects that a checkpoint refers to, and its own."""
    keys = {index_key(segment.index) for segment in checkpoint.segments}
    keys |= {directory_key(segment.index) for segment in checkpoint.segments}
    keys |= {bundle_key(bundle.digest) for bundle in checkpoint.bundles}
    keys |= {history_key(block.digest) for block in checkpoint.history}
    return keys | ({checkpoint.key} if checkpoint.key else set())


def _is_due(recent: Sequence[Commit], commit: Commit) -> bool:
    """Tell whether `commit` fills up a share of work, or whether two shares were left undone."""
    before = total = 0
    for made in recent:
        if made.sequence <= commit.sequence:
            before, total = total, total + ROWS // BLOCK + made.elements
    return total >= ROWS and (total // ROWS > before // ROWS or total >= 2 * ROWS)


def _must_change(source: Source, removals: Removals, *, without_dead: bool) -> bool:
    """Tell whether one source cannot stay a segment as it is."""
    if source.lacks_directory:
        return True
    if not without_dead or not removals.dead:
        return False
    return any(pack in removals.dead for pack in source.packs())


def _plan(sources: Sequence[Source], covered: int) -> list[list[Source]]:
    """Return which sources become one segment each, in order; those up to commit `covered` are segments."""
    groups: list[list[Source]] = [[source] for source in sources if source.segment.commit <= covered]
    fresh: list[list[Source]] = []
    for source in sources:
        if source.segment.commit > covered and source.segment.rows:
            if fresh and max(_rows(fresh[-1]), source.segment.rows) < FINAL_ROWS:
                fresh[-1].append(source)
            else:
                fresh.append([source])
    for group in fresh:
        groups.append(group)
        while len(groups) > 1 and _belong(_rows(groups[-2]), _rows(groups[-1]), FINAL_ROWS):
            groups[-2:] = [groups[-2] + groups[-1]]
    return groups


def _belong(before: int, size: int, final: int) -> bool:
    """Tell whether something of `size` is merged with what comes `before` it."""
    return before <= _FACTOR * size and max(before, size) < final


def _rows(group: Sequence[Source]) -> int:
    return sum(source.segment.rows for source in group)


def _merge(backend: Backend, group: Sequence[Source], removals: Removals) -> list[Segment]:
    """Write the living rows of some sources as one segment, as several if they are too many for one."""
    sizes = {pack: size for source in group for pack, (size, _) in source.packs().items()}
    newest = max(source.segment.commit for source in group)
    tables = (one_per_pack(living(table, removals)) for table in in_order(group, SCHEMA.names))
    segments, builder = [], IndexBuilder()
    for table in tables:
        if builder.rows + len(table) > 2 * FINAL_ROWS:
            segments.append(_finish(backend, builder, sizes, newest))
            builder = IndexBuilder()
        builder.add(table)
    if builder.rows:
        segments.append(_finish(backend, builder, sizes, newest))
    return segments


def _bundle(backend: Backend, base: Checkpoint, segments: Sequence[Segment]) -> Iterator[Bundle]:
    """Yield the bundles of the final segments; those that the checkpoint `base` has are not written again."""
    known = {bundle.members: bundle for bundle in base.bundles}
    final = [segment for segment in segments if segment.rows >= FINAL_ROWS]
    for start in range(0, len(final), _BUNDLED):
        members = {segment.index: segment.lead for segment in final[start : start + _BUNDLED] if segment.lead}
        if len(members) < 2:
            continue
        if tuple(members) not in known:
            tables = [read_section(backend, index, lead.version_keys) for index, lead in members.items()]
            data = b"".join(tables)
            backend.put(bundle_key(sha256(data)), data)
            known[tuple(members)] = Bundle(sha256(data), tuple(members))
        yield known[tuple(members)]


def _finish(backend: Backend, builder: IndexBuilder, sizes: dict[str, int], newest: int) -> Segment:
    index = builder.finish(sizes)
    write_index(backend, index)
    return Segment(index.digest, index.rows, newest, index.lead)


def _extend_history(backend: Backend, log: Log, base: Checkpoint, entries: Sequence[bytes]) -> list[Block]:
    """Return the blocks of history with those that copy `entries`, which follow the checkpoint `base`."""
    blocks, added, first = list(base.history), list(entries), base.sequence + 1
    while blocks and _belong(len(blocks[-1]), len(added), _FINAL_ENTRIES):
        block = blocks.pop()
        added, first = log.entries_of(block) + added, block.first
    for start in range(0, len(added), _FINAL_ENTRIES):
        block, data = encode_block(first + start, added[start : start + _FINAL_ENTRIES])
        backend.put(history_key(block.digest), data)
        blocks.append(block)
    return blocks
