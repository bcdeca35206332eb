"""The log: every entry, in order, each following the one before; and what the entries say together.

An entry that is damaged or missing is a finding, but what it said may still be known: blocks of history hold
copies, and a copy is proven by the entry that follows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from store.entry import MAX_SEQUENCE, REPAIR, Commit, decode_lone, is_entry
from store.errors import IntegrityError, KeyMissing, NotAStore, UnsupportedFormat
from store.format import (
    EXPORT,
    FORMAT_KEY,
    FORMAT_VERSION,
    LOG_PREFIX,
    REMOVAL_PREFIX,
    RESTORE,
    is_digest,
    log_key,
    removal_key,
    sha256,
    unseal,
)
from store.removals import Removal, Removals, decode_removal
from store.verify.checkpoints import Derived
from store.verify.survey import Survey, Suspect


@dataclass(slots=True)
class History:
    """What the entries of the log say together.

    `store` is the id of the store; `commits` are the entries that are known, by number, `lost` the numbers of
    those that are not; `proofs` are the digests that entries must have, by number, as what follows them says
    (0 is `format.json`). `indexes` maps index files to the commits that named them, `replaced` those that a
    repair stands in for to its number; `pinned` maps snapshots that were not collected to their last pin.
    """

    store: str = ""
    commits: dict[int, Commit] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    proofs: dict[int, str] = field(default_factory=dict)
    indexes: dict[str, list[int]] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    pinned: dict[str, int] = field(default_factory=dict)
    removals: Removals = field(default_factory=Removals)

    @property
    def tip(self) -> int:
        """Number of the newest entry that is known."""
        return max(self.commits, default=0)


def check_chain(survey: Survey, derived: Derived) -> History:
    """Check `format.json`, all entries and all lists of removals; copies of entries fill gaps.

    Raises `NotAStore` if there is neither, `UnsupportedFormat` if a newer version wrote them.
    """
    keys = [key for key in survey.keys(LOG_PREFIX) if is_entry(key)]
    if FORMAT_KEY not in survey.sizes and not keys:
        raise NotAStore(f"there is no store at {survey.backend.url}; create one with `cellar init`")
    history = History()
    entries: dict[int, bytes] = {}
    origin = _check_format(survey, history)
    survey.examine(
        keys,
        lambda key, data: _check_entry(entries, key, data),
        lambda key: Suspect(key, "", commits=[_number(key)] if _number(key) <= MAX_SEQUENCE else []),
    )
    if derived.newest.sequence:
        history.proofs[derived.newest.sequence] = derived.newest.tip
    _prove(history.proofs, entries, derived.copies)
    _Chain(survey, history, entries, derived.copies, origin).follow()
    lists = _check_removals(survey)
    for number in sorted(history.commits):
        _take_in(history, history.commits[number], lists)
    return history


def catch_up(survey: Survey, history: History) -> None:
    """Take in what was committed since: a collection at work meanwhile may have removed what was listed."""
    number = history.tip + 1
    while True:
        try:
            commit = decode_lone(survey.read(log_key(number)), number)
            lists = {}
            if commit.removal:
                lists[commit.removal] = decode_removal(
                    survey.read(removal_key(commit.removal)), commit.removal
                )
        except (IntegrityError, KeyMissing):
            return
        history.commits[number] = commit
        _take_in(history, commit, lists)
        number += 1


def _check_format(survey: Survey, history: History) -> str:
    """Check `format.json` and return its digest, "" if it is not known."""
    found: list[bytes] = []

    def check(key: str, data: bytes) -> None:
        record = unseal(data, key, {"features": list, "format": int, "store": str})
        if record["format"] != FORMAT_VERSION or record["features"] not in ([], [EXPORT]):
            raise UnsupportedFormat(
                f"{survey.backend.url} has format {record['format']} {record['features']}; use the version "
                "of cellar that wrote it"
            )
        history.store = record["store"]
        found.append(data)

    if FORMAT_KEY in survey.sizes:
        survey.examine([FORMAT_KEY], check)
    else:
        survey.suspect(FORMAT_KEY, f"{FORMAT_KEY} is missing; {RESTORE}")
    return sha256(found[0]) if found else ""


def _check_entry(entries: dict[int, bytes], key: str, data: bytes) -> None:
    decode_lone(data, _number(key))
    entries[_number(key)] = data


def _number(key: str) -> int:
    return int(key.removeprefix(LOG_PREFIX).removesuffix(".json"))


def _prove(proofs: dict[int, str], entries: Mapping[int, bytes], copies: Mapping[int, bytes]) -> None:
    """Work out which digests entries must have, from the newest to the oldest: each names the one before."""
    for number in sorted({*entries, *copies}, reverse=True):
        data = entries.get(number)
        if data is None and sha256(copies[number]) == proofs.get(number):
            data = copies[number]
        if data is not None:
            proofs[number - 1] = previous_of(data)


class _Chain:
    """Follows the entries from the first to the last, over gaps where copies or later entries bridge them."""

    def __init__(
        self,
        survey: Survey,
        history: History,
        entries: dict[int, bytes],
        copies: Mapping[int, bytes],
        origin: str,
    ) -> None:
        self._survey = survey
        self._history = history
        self._entries = entries
        self._copies = copies
        self._origin = origin

    def follow(self) -> None:
        previous, expected = self._origin, 1
        for number in sorted({*self._entries, *self._copies} | self._history.proofs.keys() - {0}):
            if number > expected:
                self._gap(expected, number)
                previous = ""
            previous, expected = self._link(number, previous), number + 1

    def _link(self, number: int, previous: str) -> str:
        """Take in one entry; return its digest, "" if what it was is not known."""
        key, data = log_key(number), self._entries.get(number)
        if data is None and key not in self._survey.sizes:
            self._missing(key, f"{key} is missing", number)
        elif data is not None and previous and previous_of(data) != previous:
            self._survey.suspect(
                key, f"{key} does not follow the entry before it; {RESTORE}", commits=[number]
            )
            data = None
        if data is None:
            data = self._proven_copy(number, previous)
        if data is None:
            self._history.lost.add(number)
            return ""
        self._history.commits[number] = decode_lone(data, number)
        return sha256(data)

    def _proven_copy(self, number: int, previous: str) -> bytes | None:
        """Return the copy of an entry if the entry after it names its digest, or it follows what is known."""
        copy, proof = self._copies.get(number), self._history.proofs.get(number)
        if copy is None:
            return None
        if proof is not None:
            return copy if proof == sha256(copy) else None
        return copy if previous and previous_of(copy) == previous else None

    def _gap(self, first: int, end: int) -> None:
        if end - first == 1:
            self._missing(log_key(first), f"{log_key(first)} is missing", first)
        else:
            what = f"{log_key(first)} and the {end - first - 1} entries after it are missing"
            self._missing(log_key(first), what, first)
        self._history.lost.update(range(first, min(end, first + _MOST_LOST)))

    def _missing(self, key: str, what: str, number: int) -> None:
        self._survey.suspect(key, f"{what}; {RESTORE}", commits=[number])


_MOST_LOST = 100_000
"""A forged number of an entry must not make the list of lost ones endless."""


def previous_of(entry: bytes) -> str:
    """Return the digest that an intact entry names as that of the entry before it."""
    return str(json.loads(entry)["previous"])


def _check_removals(survey: Survey) -> dict[str, Removal]:
    found: dict[str, Removal] = {}

    def check(key: str, data: bytes) -> None:
        digest = key.removeprefix(REMOVAL_PREFIX).removesuffix(".json")
        found[digest] = decode_removal(data, digest)

    survey.examine([key for key in survey.keys(REMOVAL_PREFIX, ".json") if is_list(key)], check)
    return found


def is_list(key: str) -> bool:
    """Whether a key is that of the list of a removal; the collector keeps a record of its own beside them."""
    return is_digest(key.removeprefix(REMOVAL_PREFIX).removesuffix(".json"))


def _take_in(history: History, commit: Commit, lists: Mapping[str, Removal]) -> None:
    for digest in commit.indexes:
        history.indexes.setdefault(digest, []).append(commit.sequence)
    if commit.action == REPAIR:
        history.replaced.update(dict.fromkeys(commit.replaces, commit.sequence))
    if commit.snapshot:
        history.pinned[commit.snapshot] = commit.sequence
    removal = lists.get(commit.removal)
    history.removals = history.removals.after(commit, removal)
    for snapshot in history.removals.gone:
        history.pinned.pop(snapshot, None)


def missing_lists(survey: Survey, history: History) -> Iterator[tuple[str, int]]:
    """Yield the lists of removals that entries name and that are not there, with the entry's number."""
    for number, commit in sorted(history.commits.items()):
        if commit.removal and not survey.exists(removal_key(commit.removal)):
            yield removal_key(commit.removal), number
