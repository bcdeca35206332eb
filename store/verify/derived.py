"""Derived data: checkpoints, blocks of history, and directories of index files.

Nothing depends on them but speed. So damage to them touches no element, and all of it can be made again from
the log and the index files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from store.directory import check_directory, encode_directory
from store.errors import IntegrityError
from store.format import (
    CHECKPOINT_PREFIX,
    HISTORY_PREFIX,
    INDEX_PREFIX,
    bundle_key,
    check_digest,
    directory_key,
    history_key,
    is_digest,
    log_key,
    sha256,
)
from store.history import Block, decode_block
from store.index import newest_commits
from store.manifest import Checkpoint, decode_checkpoint
from store.verify.chain import History
from store.verify.survey import Survey

_COMPARED_ROWS = 2**18
"""Directories of larger index files are checked against their own digests and the file's regions only."""


@dataclass(slots=True)
class Derived:
    """What the intact checkpoints say: the newest of them, and copies of log entries with their places."""

    newest: Checkpoint = field(default_factory=Checkpoint)
    named: set[str] = field(default_factory=set)
    copies: dict[int, bytes] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)


def check_checkpoints(survey: Survey) -> Derived:
    """Check all checkpoints and blocks of history by themselves."""
    found = Derived()
    checkpoints: list[Checkpoint] = []

    def check(key: str, data: bytes) -> None:
        if key.endswith(".json"):
            checkpoints.append(decode_checkpoint(data, key))
        else:  # those of earlier versions, which nobody reads any more
            check_digest(data, _digest(key), key, holds="log checkpoint of an earlier version")

    survey.examine(survey.keys(CHECKPOINT_PREFIX), check)
    for checkpoint in sorted(checkpoints, key=lambda checkpoint: checkpoint.sequence):
        found.newest = checkpoint
        found.blocks.update((block.digest, block) for block in checkpoint.history)

    def check_block(key: str, data: bytes) -> None:
        block = found.blocks.get(_digest(key))
        if block is None:
            check_digest(data, _digest(key), key, holds="block of log entries")
        else:
            found.copies.update(enumerate(decode_block(data, block), start=block.first))

    def check_bundle(key: str, data: bytes) -> None:
        check_digest(data, _digest(key), key, holds="key tables")

    survey.examine(survey.keys(HISTORY_PREFIX), check_block)
    survey.examine(survey.keys(INDEX_PREFIX, ".bundle"), check_bundle)
    return found


def compare_checkpoints(survey: Survey, derived: Derived, history: History) -> None:
    """Compare the newest checkpoint and its blocks with the log, and see that what it names is there."""
    newest = derived.newest
    known = history.commits.get(newest.sequence)
    if known is not None and known.digest != newest.tip:
        survey.suspect(newest.key, f"{newest.key} is about another log than that of the store")
    for block in newest.history:
        key = history_key(block.digest)
        if not survey.exists(key):
            survey.suspect(key, f"{key}, which {newest.key} names, is missing; the log has its entries")
            continue
        for number in range(block.first, block.last + 1):
            copy, commit = derived.copies.get(number), history.commits.get(number)
            if copy is not None and commit is not None and sha256(copy) != commit.digest:
                survey.suspect(key, f"{key} differs from {log_key(number)}")
                break
    for bundle in newest.bundles:
        key = bundle_key(bundle.digest)
        if not survey.exists(key):
            survey.suspect(key, f"{key}, which {newest.key} names, is missing; lookups take longer")
    for segment in newest.segments:
        key = directory_key(segment.index)
        if segment.lead is not None and not survey.exists(key):
            survey.suspect(key, f"{key}, which {newest.key} names, is missing; lookups take longer")


def compare_directory(
    directory: bytes, index: str, data: bytes, listed: pa.Table, sizes: dict[str, int]
) -> None:
    """Check the directory of the index file `data`, whose rows are `listed`; raises `IntegrityError`."""
    found = check_directory(directory, index)
    key = directory_key(index)
    for region in (*found.groups, found.footer):
        part = data[region.offset : region.offset + region.length]
        check_digest(part, region.digest, key, holds="place of a row group")
    if found.rows > _COMPARED_ROWS:
        return
    newest = newest_commits(listed)
    packs = {pack: (sizes[pack], newest[pack]) for pack in sorted(newest)}
    right = check_directory(encode_directory(data, listed, packs), index)
    for name, section in found.sections.items():
        # The footer is compressed, and other versions of zlib compress it to other bytes.
        if name != "footer" and section.digest != right.sections[name].digest:
            raise IntegrityError(f"{key} leads to other rows than its index file has; delete that object")


def check_lone_directories(survey: Survey, keys: list[str]) -> None:
    """Check directories of index files that are missing or damaged, as far as they say themselves."""

    def check(key: str, data: bytes) -> None:
        check_directory(data, _digest(key))

    survey.examine([key for key in keys if is_digest(_digest(key))], check)


def _digest(key: str) -> str:
    """The digest in a key such as `log/history-<digest>.parquet` or `index/<digest>.keys`."""
    return key.rpartition("/")[2].rpartition(".")[0].rpartition("-")[2]
