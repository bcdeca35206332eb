"""What names snapshots and what belongs to builds: tags, heads, holds, signatures, leases; and the rest."""

from __future__ import annotations

from collections import defaultdict

from store.errors import IntegrityError
from store.format import (
    BUILD_PREFIX,
    CLAIM_PREFIX,
    HEAD_PREFIX,
    HOLD_PREFIX,
    RESTORE,
    SIGNATURE_PREFIX,
    TAG_PREFIX,
    TURN_KEY,
    remedy,
    snapshot_key,
    unseal,
)
from store.holds import decode_hold
from store.positions import positions_of
from store.signature import decode_signature
from store.verify.chain import History
from store.verify.survey import Survey


class Names:
    """The snapshots that tags, heads and holds name."""

    def __init__(self, survey: Survey, history: History) -> None:
        self._survey = survey
        self._history = history
        self._names: dict[str, set[str]] = defaultdict(set)

    @property
    def named(self) -> set[str]:
        """The ids of all snapshots that something names."""
        return set(self._names)

    def of(self, snapshot: str) -> set[str]:
        """Return the names of a snapshot, as in `tag:v1`."""
        return self._names.get(snapshot, set())

    def check(self) -> None:
        """Check every name, signature and lease."""
        survey = self._survey
        survey.examine(survey.keys(TAG_PREFIX), self._check_tag)
        survey.examine(survey.keys(HEAD_PREFIX), self._check_head)
        survey.examine(survey.keys(HOLD_PREFIX, ".json"), self._check_hold)
        survey.examine(survey.keys(SIGNATURE_PREFIX, ".json"), self._check_signature)
        survey.examine(survey.keys(BUILD_PREFIX, "/lease.json"), self._check_lease)
        survey.examine([TURN_KEY] if TURN_KEY in survey.sizes else [], self._check_turn)
        survey.examine(survey.keys(CLAIM_PREFIX, ".json"), self._check_turn)

    def _check_tag(self, key: str, data: bytes) -> None:
        self._check_ref("tag", key, key.removeprefix(TAG_PREFIX), unseal(data, key, _REF)["name"], data)

    def _check_head(self, key: str, data: bytes) -> None:
        record = unseal(data, key, _REF)
        positions_of(record, key)
        self._check_ref("head", key, key.removeprefix(HEAD_PREFIX), record["name"], data)

    def _check_ref(self, noun: str, key: str, name: str, says: str, data: bytes) -> None:
        if says != name:
            raise IntegrityError(f"{key} is that of {noun} {says}; {remedy(key)}")
        snapshot = unseal(data, key, _REF)["snapshot"]
        self._names[snapshot].add(f"{noun}:{name}")
        self._check_named(key, snapshot)

    def _check_hold(self, key: str, data: bytes) -> None:
        record = decode_hold(data, key)
        name = key.removeprefix(HOLD_PREFIX).removesuffix(".json")
        if record.get("name") != name:
            raise IntegrityError(f"{key} is the hold of {record.get('name')}; {remedy(key)}")
        if record["snapshot"] not in self._history.removals.gone:  # an expired hold keeps nothing
            self._names[record["snapshot"]].add(f"hold:{name}")
            self._check_named(key, record["snapshot"])

    def _check_signature(self, key: str, data: bytes) -> None:
        snapshot = key.removeprefix(SIGNATURE_PREFIX).partition("/")[0]
        decode_signature(data, key, snapshot)

    def _check_lease(self, key: str, data: bytes) -> None:
        record = unseal(data, key, {"build": str, "seconds": int})
        if key != f"{BUILD_PREFIX}{record['build']}/lease.json":
            raise IntegrityError(f"{key} is the lease of build {record['build']}; run the build again")

    def _check_turn(self, key: str, data: bytes) -> None:
        unseal(data, key, {"owner": str, "seconds": int})

    def _check_named(self, key: str, snapshot: str) -> None:
        where = snapshot_key(snapshot)
        if snapshot not in self._history.pinned and not self._survey.exists(where):
            raise IntegrityError(f"{where}, the snapshot that {key} names, is missing; {RESTORE}")


_REF: dict[str, type] = {"name": str, "snapshot": str}
