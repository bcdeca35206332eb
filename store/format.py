"""Canonical JSON, digests, sealed records and the object keys of the on-bucket layout."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from store.errors import IntegrityError, InvalidName, InvalidRecord

Bytes = TypeVar("Bytes", bytes, memoryview)

FORMAT_VERSION = 1
"""Version of the on-bucket layout; a reader refuses any other."""

EXPORT = "export"
"""Feature of a place that holds one snapshot and is never written."""

FORMAT_KEY = "format.json"
LOG_PREFIX = "log/"
ENTRY_PREFIX = "log/0"
"""Prefix of the log's entries, which their numbers' leading zero sets apart from what lies beside them."""
CHECKPOINT_PREFIX = "log/checkpoint-"
HISTORY_PREFIX = "log/history-"
PACK_PREFIX = "packs/"
INDEX_PREFIX = "index/"
SNAPSHOT_PREFIX = "snapshots/"
BUILD_PREFIX = "builds/"
REMOVAL_PREFIX = "gc/"
TURN_KEY = "gc/turn.json"
TAG_PREFIX = "refs/tags/"
HEAD_PREFIX = "refs/heads/"
SIGNATURE_PREFIX = "signatures/"
HOLD_PREFIX = "pins/"
CLAIM_PREFIX = "claims/"
DOCTOR_PREFIX = "doctor/"
"""Where `store.doctor` tries things out; nothing below it belongs to a store."""

_HEX_64 = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")

encode_json = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
"""Encode plain values as canonical JSON text, unchecked; one encoder for all, because making one is slow."""

RESTORE = "restore that object from a copy of the store, then run `cellar verify --full`"


def is_name(key: str) -> bool:
    """Tell whether an object is a tag, a head or a hold: they follow from nothing else that is stored."""
    return key.startswith((TAG_PREFIX, HEAD_PREFIX, HOLD_PREFIX))


def remedy(key: str) -> str:
    """Return what to do about a damaged record."""
    if is_name(key):
        return f"make the name again after deleting {key}"
    return RESTORE


def sha256(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Tell whether `text` is a SHA-256 in lower-case hex."""
    return _HEX_64.fullmatch(text) is not None


def canonical_json(value: object) -> bytes:
    """Encode `value` as the one JSON text that equal values share.

    Keys are sorted, there is no white space, text is UTF-8 and tuples become lists. Raises
    `InvalidRecord` for NaN, infinities, keys that are not text, lone surrogates and types that JSON lacks,
    because each of those would make equal records differ or different records equal.
    """
    try:
        _refuse_other_keys(value)
        text = encode_json(value)
    except (TypeError, ValueError):  # other mappings than dict, or what must be refused by its place
        _check_json(value, "$")
        text = encode_json(plain(value))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRecord(
            f"text {text[error.start]!r} in a record is not valid Unicode; remove it"
        ) from error


def _refuse_other_keys(value: object) -> None:
    """Raise `TypeError` for keys that are not text, which the encoder would turn into text."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key that is not text")
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return
    for item in value:
        _refuse_other_keys(item)


def _check_json(value: object, where: str) -> None:
    if value is None or isinstance(value, (str, bool, int)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRecord(f"{where} is {value}, which JSON cannot hold; leave it out or use null")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidRecord(f"{where} has the key {key!r}; keys of a record must be text")
            _check_json(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            _check_json(item, f"{where}[{position}]")
    else:
        raise InvalidRecord(f"{where} is a {type(value).__name__}; a record holds JSON values only")


def plain(value: Any) -> Any:
    """Return `value` with mappings as dicts and tuples as lists, so that `json` can encode it."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def seal(record: Mapping[str, object]) -> bytes:
    """Encode a record together with a digest of itself, so that any flipped bit shows when it is read."""
    return canonical_json({**record, "seal": sha256(canonical_json(record))})


def unseal(data: bytes, key: str, fields: Mapping[str, type] | None = None) -> dict[str, Any]:
    """Decode a sealed record; raises `IntegrityError` naming `key` unless every byte is as it was written.

    A seal only shows that a record is whole, not that this program wrote it. So `fields` names the entries
    that the caller needs and their types, and a record without them is refused too.
    """
    try:
        record = json.loads(data)
        claimed = record.pop("seal")
        intact = seal(record) == data and claimed == sha256(canonical_json(record))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise IntegrityError(f"{key} is damaged (its seal does not match its content); {remedy(key)}")
    check_fields(record, key, fields or {})
    return dict(record)


def check_fields(record: Mapping[str, Any], key: str, fields: Mapping[str, type]) -> None:
    """Raise `IntegrityError` naming `key` unless `record` has all `fields` with values of their types."""
    for name, kind in fields.items():
        value = record.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise IntegrityError(f"{key} holds no {name!r} of type {kind.__name__}; {remedy(key)}")


def encode_format(*, store: str, created: str, features: Sequence[str] = ()) -> bytes:
    """Return `format.json`, the record that makes a place a store."""
    return seal({"created": created, "features": list(features), "format": FORMAT_VERSION, "store": store})


def check_digest(data: Bytes, digest: str, key: str, *, holds: str) -> Bytes:
    """Return `data` if its SHA-256 is `digest`; otherwise raise `IntegrityError` naming key and content."""
    if sha256(data) != digest:
        raise IntegrityError(f"{key} is damaged ({holds}: SHA-256 differs from {digest[:12]}); {RESTORE}")
    return data


def check_label(label: str, noun: str) -> str:
    """Return a build, tag or head name if it is one: 1-128 of `A-Z a-z 0-9 . _ -`, no leading dot or dash."""
    if _LABEL.fullmatch(label) is None:
        raise InvalidName(
            f"{noun} name {label!r} is not valid; use 1 to 128 letters, digits, '.', '_' or '-', "
            "starting with a letter, digit or '_'"
        )
    return label


def pack_key(digest: str) -> str:
    """Key of a pack; the two-digit folder keeps local directories small."""
    return f"{PACK_PREFIX}{digest[:2]}/{digest}"


def index_key(digest: str) -> str:
    """Key of the index file that holds the rows a commit added."""
    return f"{INDEX_PREFIX}{digest}.parquet"


def directory_key(digest: str) -> str:
    """Key of the directory of a large index file: derived data that tells where in it a row may be."""
    return f"{INDEX_PREFIX}{digest}.keys"


def bundle_key(digest: str) -> str:
    """Key of a bundle: copies of the key tables of several index files in one object."""
    return f"{INDEX_PREFIX}{digest}.bundle"


def log_key(sequence: int) -> str:
    """Key of log entry `sequence` (1 is the first); twenty digits make text order numeric order."""
    return f"{LOG_PREFIX}{sequence:020d}.json"


def checkpoint_key(sequence: int, digest: str) -> str:
    """Key of the checkpoint that covers log entries 1 to `sequence`; the digest makes it verifiable.

    Twenty digits count down, so that the newest checkpoint is the first in a listing however many there are.
    """
    return f"{CHECKPOINT_PREFIX}{10**20 - 1 - sequence:020d}-{digest}.json"


def history_key(digest: str) -> str:
    """Key of a block of history: a copy of many log entries in one object."""
    return f"{HISTORY_PREFIX}{digest}.parquet"


def snapshot_key(snapshot: str) -> str:
    """Key of the head record of a snapshot."""
    return f"{SNAPSHOT_PREFIX}{snapshot}.json"


def snapshot_rows_key(digest: str) -> str:
    """Key of the rows of a snapshot."""
    return f"{SNAPSHOT_PREFIX}{digest}.parquet"


def removal_key(digest: str) -> str:
    """Key of the list of packs and snapshots that a `condemn` or `collect` entry of the log is about."""
    return f"{REMOVAL_PREFIX}{digest}.json"


def signatures_prefix(snapshot: str) -> str:
    """Prefix of the signatures on a snapshot."""
    return f"{SIGNATURE_PREFIX}{snapshot}/"


def signature_key(snapshot: str, key_id: str) -> str:
    """Key of the signature that the key of that id made on a snapshot."""
    return f"{signatures_prefix(snapshot)}{key_id}.json"


def hold_key(name: str) -> str:
    """Key of the hold with which a run keeps a snapshot alive."""
    return f"{HOLD_PREFIX}{name}.json"


def claim_key(name: str) -> str:
    """Key of the claim of who works on what `name` stands for."""
    return f"{CLAIM_PREFIX}{name}.json"


def lease_key(build: str) -> str:
    """Key of the lease that protects the packs of a running build."""
    return f"{BUILD_PREFIX}{build}/lease.json"


def parts_prefix(build: str) -> str:
    """Prefix of the parts of a build."""
    return f"{BUILD_PREFIX}{build}/parts/"


def part_key(build: str, digest: str) -> str:
    """Key of one part: the rows of one finished unit of work."""
    return f"{parts_prefix(build)}{digest}.parquet"
