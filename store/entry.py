"""One entry of the log: what a commit says, as it is written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from store.errors import IntegrityError, UnsupportedFormat
from store.format import LOG_PREFIX, RESTORE, check_fields, is_digest, log_key, seal, sha256, unseal

PUBLISH = "publish"
PIN = "pin"
CONDEMN = "condemn"
COLLECT = "collect"
SWEPT = "swept"
REPAIR = "repair"
ACTIONS = frozenset({PUBLISH, PIN, CONDEMN, COLLECT, SWEPT, REPAIR})
MAX_SEQUENCE = 2**62
"""No entry has a larger number, and no row could say that it belongs to one."""
_ENTRY = re.compile(re.escape(LOG_PREFIX) + r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class Commit:
    """One visible change of a store.

    `sequence` counts from 1 (0 is the creation of the store); `digest` is the SHA-256 of the log entry;
    `elements` and `bytes` count what the commit added; `packs` the packs it refers to; `snapshot` is set on a
    pin; `run` says where and when the work happened and never enters a version. `removal` is set on `condemn`
    and `collect`, see `store.removals`; the `indexes` of a `repair` stand in for those it `replaces`. A pin
    says in `holds` (None: one of earlier versions) how many elements with how many bytes its snapshot has.
    """

    sequence: int
    digest: str
    id: str
    action: str
    message: str
    time: str
    build: str = ""
    receipts: str = ""
    indexes: tuple[str, ...] = ()
    elements: int = 0
    bytes: int = 0
    packs: int = 0
    snapshot: str = ""
    run: dict[str, Any] = field(default_factory=dict, hash=False)
    removal: str = ""
    replaces: tuple[str, ...] = ()
    holds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What a committer wants to make visible; see `Commit` for the fields."""

    action: str
    message: str
    run: Mapping[str, Any]
    build: str = ""
    receipts: str = ""
    indexes: tuple[str, ...] = ()
    elements: int = 0
    bytes: int = 0
    packs: int = 0
    snapshot: str = ""
    removal: str = ""
    replaces: tuple[str, ...] = ()
    holds: tuple[int, int] | None = None


_FIELDS: dict[str, type] = {
    "build": str,
    "bytes": int,
    "elements": int,
    "id": str,
    "indexes": list,
    "message": str,
    "packs": int,
    "receipts": str,
    "run": dict,
    "snapshot": str,
    "time": str,
}


def encode_entry(draft: Draft, *, sequence: int, previous: str, unique: str, time: str) -> bytes:
    """Return the log entry that makes `draft` commit number `sequence`; `unique` is its id."""
    record: dict[str, Any] = {
        "action": draft.action,
        "build": draft.build,
        "bytes": draft.bytes,
        "elements": draft.elements,
        "id": unique,
        "indexes": list(draft.indexes),
        "message": draft.message,
        "packs": draft.packs,
        "previous": previous,
        "receipts": draft.receipts,
        "run": draft.run,
        "sequence": sequence,
        "snapshot": draft.snapshot,
        "time": time,
    }
    # Only where they say something: entries without them stay readable for programs that lack them.
    if draft.removal:
        record["removal"] = draft.removal
    if draft.replaces:
        record["replaces"] = list(draft.replaces)
    if draft.holds:
        record["holds"] = list(draft.holds)
    return seal(record)


def is_entry(key: str) -> bool:
    """Whether a key is that of a log entry; a synchronisation tool may have left others beside them."""
    return _ENTRY.fullmatch(key) is not None


def sequence_of(key: str) -> int:
    """Return the number of the log entry under `key`."""
    return int(key.removeprefix(LOG_PREFIX).removesuffix(".json"))


def decode_commit(entry: bytes, *, previous: Commit) -> Commit:
    """Decode the entry after `previous`; raises `IntegrityError` if it does not follow or is damaged."""
    key = log_key(previous.sequence + 1)
    record = unseal(entry, key, {"action": str, "previous": str, "sequence": int})
    if record["sequence"] != previous.sequence + 1 or record.pop("previous") != previous.digest:
        raise IntegrityError(f"{key} does not follow the entry before it; {RESTORE}")
    if record["sequence"] > MAX_SEQUENCE:
        raise IntegrityError(f"{key} has a number that no entry has; delete that object")
    if record["action"] not in ACTIONS:
        raise UnsupportedFormat(
            f"{key} holds the action {record['action']!r}; upgrade cellar to read this store"
        )
    check_fields({"removal": "", "replaces": [], **record}, key, _FIELDS | {"removal": str, "replaces": list})
    for name in ("indexes", "replaces"):
        record[name] = tuple(record.get(name, ()))
    if "holds" in record:
        record["holds"] = _decode_holds(record["holds"], key)
    named = [*record["indexes"], *record["replaces"]]
    named += [digest for digest in (record["snapshot"], record.get("removal")) if digest]
    if not all(isinstance(digest, str) and is_digest(digest) for digest in named):
        raise IntegrityError(f"{key} names an object that no store has; {RESTORE}")
    try:
        return Commit(digest=sha256(entry), **record)
    except TypeError as error:
        raise UnsupportedFormat(
            f"{key} has fields that this version does not know; upgrade cellar"
        ) from error


def _decode_holds(value: object, key: str) -> tuple[int, int]:
    match value:
        case [int(elements), int(size)] if elements >= 0 and size >= 0:
            return elements, size
    raise IntegrityError(f"{key} does not say what its snapshot holds; {RESTORE}")


def decode_lone(entry: bytes, sequence: int) -> Commit:
    """Decode entry `sequence` without the one before it, for bytes that are known to be the log's."""
    claimed = unseal(entry, log_key(sequence), {"previous": str})["previous"]
    return decode_commit(entry, previous=Commit(sequence - 1, claimed, "", "", "", ""))
