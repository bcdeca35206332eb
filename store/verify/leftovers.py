"""What is stored and nothing refers to: counted, since it costs space, and no damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from store.format import (
    BUILD_PREFIX,
    CHECKPOINT_PREFIX,
    CLAIM_PREFIX,
    DOCTOR_PREFIX,
    FORMAT_KEY,
    HEAD_PREFIX,
    HISTORY_PREFIX,
    HOLD_PREFIX,
    INDEX_PREFIX,
    LOG_PREFIX,
    PACK_PREFIX,
    REMOVAL_PREFIX,
    SIGNATURE_PREFIX,
    SNAPSHOT_PREFIX,
    TAG_PREFIX,
    bundle_key,
    directory_key,
    history_key,
    index_key,
    removal_key,
    snapshot_key,
    snapshot_rows_key,
)
from store.verify.chain import History, is_list
from store.verify.checkpoints import Derived
from store.verify.pinned import Snapshots
from store.verify.survey import Survey
from store.verify.tables import Tables

_OTHERS = (FORMAT_KEY, LOG_PREFIX, PACK_PREFIX, REMOVAL_PREFIX, TAG_PREFIX, HEAD_PREFIX, HOLD_PREFIX)
_BELOW = (BUILD_PREFIX, CLAIM_PREFIX, INDEX_PREFIX, SNAPSHOT_PREFIX, SIGNATURE_PREFIX, DOCTOR_PREFIX)
_KINDS = (*_OTHERS, *_BELOW)


def count_leftovers(
    survey: Survey,
    history: History,
    derived: Derived,
    tables: Tables,
    snapshots: Snapshots,
    packs: Collection[str],
) -> dict[str, int]:
    """Return how many objects of each kind nothing refers to, without kinds of which there are none.

    `packs` are those that no visible row and no snapshot needs. Builds count if no commit is theirs.
    """
    indexes = {index_key(digest) for digest in tables.needed()}
    indexes |= {directory_key(segment.index) for segment in derived.newest.segments}
    indexes |= {bundle_key(bundle.digest) for bundle in derived.newest.bundles}
    indexes |= {
        directory_key(digest)
        for digest, numbers in history.indexes.items()
        if max(numbers) > derived.newest.sequence
    }
    checkpoints = {derived.newest.key, *(history_key(block.digest) for block in derived.newest.history)}
    lists = {removal_key(commit.removal) for commit in history.commits.values() if commit.removal}
    heads = {snapshot_key(identity) for identity in history.pinned}
    rows = {
        snapshot_rows_key(snapshots.heads[identity])
        for identity in history.pinned
        if identity in snapshots.heads
    }
    built = {commit.build for commit in history.commits.values()}
    builds = {key.removeprefix(BUILD_PREFIX).partition("/")[0] for key in survey.keys(BUILD_PREFIX)}
    found = Counter(
        {
            "packs": len(packs),
            "builds": len(builds - built),
            "indexes": len(set(survey.keys(INDEX_PREFIX)) - indexes),
            "checkpoints": len({*survey.keys(CHECKPOINT_PREFIX), *survey.keys(HISTORY_PREFIX)} - checkpoints),
            "snapshots": len(set(survey.keys(SNAPSHOT_PREFIX)) - heads - rows),
            "doctor": len(survey.keys(DOCTOR_PREFIX)),
            "others": sum(not key.startswith(_KINDS) for key in survey.sizes),
        }
    )
    found["removals"] = len([key for key in survey.keys(REMOVAL_PREFIX) if is_list(key) and key not in lists])
    return {kind: number for kind, number in sorted(found.items()) if number}
