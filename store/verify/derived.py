"""Derived data compared with what it follows from: checkpoints with the log, directories with rows."""

from __future__ import annotations

import pyarrow as pa

from store.directory import check_directory
from store.errors import IntegrityError
from store.format import (
    bundle_key,
    check_digest,
    directory_key,
    history_key,
    is_digest,
    log_key,
    sha256,
)
from store.index import directory_of
from store.verify.chain import History
from store.verify.checkpoints import Derived, digest_in
from store.verify.survey import Survey

_COMPARED_ROWS = 2**18
"""Directories of larger index files are checked against their own digests and the file's regions only."""


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
            if copy is None:
                break  # an intact block has all of them, and a forged one may claim very many
            if commit is not None and sha256(copy) != commit.digest:
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
    right = check_directory(directory_of(data, listed, sizes), index)
    for name, section in found.sections.items():
        # The footer is compressed, and other versions of zlib compress it to other bytes.
        if name != "footer" and section.digest != right.sections[name].digest:
            raise IntegrityError(f"{key} leads to other rows than its index file has; delete that object")


def check_lone_directories(survey: Survey, keys: list[str]) -> None:
    """Check directories of index files that are missing or damaged, as far as they say themselves."""

    def check(key: str, data: bytes) -> None:
        check_directory(data, digest_in(key))

    survey.examine([key for key in keys if is_digest(digest_in(key))], check)
