"""Right bytes from elsewhere: another store, an export, or copies within the store.

Nothing is believed because of where it comes from. Bytes are taken for an object only if they prove to be its
bytes: by the digest in its key, by what the log says of it, or by a signature. Of the newest entry of the log
nothing says what it must be: from a copy of the same store that one is taken which follows the entry before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from store.backend import Backend
from store.directory import check_directory
from store.entry import Commit, decode_commit, is_entry
from store.errors import AccessDenied, IntegrityError, KeyMissing, UnsupportedFormat
from store.format import (
    BUILD_PREFIX,
    CHECKPOINT_PREFIX,
    FORMAT_KEY,
    HISTORY_PREFIX,
    INDEX_PREFIX,
    LOG_PREFIX,
    PACK_PREFIX,
    REMOVAL_PREFIX,
    SIGNATURE_PREFIX,
    SNAPSHOT_PREFIX,
    is_digest,
    log_key,
    sha256,
)
from store.removals import Removal, encode_removal
from store.repair.report import Repaired
from store.signature import decode_signature
from store.verify.chain import previous_of
from store.verify.checkpoints import digest_in
from store.verify.inspection import Inspection

_BY_DIGEST = (BUILD_PREFIX, CHECKPOINT_PREFIX, HISTORY_PREFIX, INDEX_PREFIX, REMOVAL_PREFIX, SNAPSHOT_PREFIX)


def restore_copies(
    inspection: Inspection, hurt: Collection[str], source: Backend | None
) -> Iterator[Repaired]:
    """Write right bytes over every damaged or missing object that a proven copy of is found somewhere."""
    backend, history = inspection.survey.backend, inspection.history
    waiting = sorted(hurt)
    while waiting:
        key = waiting.pop()  # the last one: newer entries of the log prove older ones
        for data, where in _copies(inspection, source, key):
            if proves(inspection, key, data) or (
                source is not None and is_entry(key) and _follows(inspection, source, key, data)
            ):
                backend.put(key, data)
                if is_entry(key):
                    before = _number(key) - 1
                    history.proofs[before] = previous_of(data)
                    if before in history.lost and log_key(before) not in hurt:
                        waiting.append(log_key(before))  # of entries missing in a row one is a finding
                yield Repaired(key, where)
                break


def proves(inspection: Inspection, key: str, data: bytes) -> bool:
    """Whether `data` are certainly the bytes of the object under `key`; False where nothing can prove it."""
    if key == FORMAT_KEY or is_entry(key):
        return inspection.history.proofs.get(_number(key)) == sha256(data)
    if key.startswith(PACK_PREFIX):
        return sha256(data) == key.rpartition("/")[2]
    digest = digest_in(key)
    try:
        if key.startswith(SIGNATURE_PREFIX):
            decode_signature(data, key, key.split("/")[1])
            return True
        if key.endswith(".keys"):
            check_directory(data, digest)
            return digest in inspection.tables.intact
    except IntegrityError:
        return False
    named = key.startswith(_BY_DIGEST) and is_digest(digest) and not _is_head(key)
    return named and sha256(data) == digest


def _follows(inspection: Inspection, source: Backend, key: str, data: bytes) -> bool:
    """Whether `data` are an entry after the one before `key`, where `source` is a copy of the same store.

    So the newest entry is known: no later one names its digest. Where something says what an entry must be,
    that alone decides; and an intact entry that does not follow stays, as the one before it may be wrong.
    """
    backend, history, number = inspection.survey.backend, inspection.history, _number(key)
    if number in history.proofs or not (number == 1 or number - 1 in history.commits):
        return False
    try:
        origin = backend.read(FORMAT_KEY)
        if source.read(FORMAT_KEY) != origin:
            return False
        before = sha256(origin) if number == 1 else history.commits[number - 1].digest
        if history.proofs.get(number - 1, before) != before:
            return False
        decode_commit(data, previous=Commit(number - 1, before, "", "", "", ""))
    except (KeyMissing, AccessDenied, IntegrityError, UnsupportedFormat):
        return False
    return True


def _number(key: str) -> int:
    """Return the number of a log entry; `format.json` comes before the first one."""
    return 0 if key == FORMAT_KEY else int(key.removeprefix(LOG_PREFIX).removesuffix(".json"))


def _is_head(key: str) -> bool:
    """Whether a key is that of the head record of a snapshot, whose name is not the digest of its bytes."""
    return key.startswith(SNAPSHOT_PREFIX) and key.endswith(".json")


def _copies(inspection: Inspection, source: Backend | None, key: str) -> Iterator[tuple[bytes, str]]:
    """Yield bytes that may be those of an object, and where they are from."""
    if is_entry(key):
        copy = inspection.derived.copies.get(_number(key))
        if copy is not None:
            yield copy, "copied from a block of history"
    if key.startswith(REMOVAL_PREFIX):
        for removal in _removals(inspection):
            yield encode_removal(removal), "made from a checkpoint"
    if source is not None:
        try:
            yield source.read(key), f"copied from {source.url}"
        except (KeyMissing, AccessDenied):
            return


def _removals(inspection: Inspection) -> Iterator[Removal]:
    for checkpoint in inspection.derived.checkpoints:
        yield checkpoint.removals.condemned
        yield checkpoint.removals.dying
