"""What is true of a store at every moment: plain dictionaries, made from the raw history of its storage.

Nothing here uses the code of the store. Every write and delete is judged when it is taken in, so that a state
that must not exist is noticed even if it did not last.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.parquet as pq

from tests.store.memory import Event, Memory

_ENTRY = re.compile(r"log/(\d{20})\.json")
_ONCE = re.compile(r"format\.json|log/\d{20}\.json|refs/tags/.*|snapshots/.*\.json")
_CONTENT = re.compile(r"(?:packs/../|index/|snapshots/|builds/[^/]+/parts/|gc/)([0-9a-f]{64})(?:\.parquet|)")
Body = bytes | None


class Broken(AssertionError):
    """The store did something that it promises not to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a publish entry: where a version lies."""

    version: str
    name: str
    recipe: str
    pack: str
    commit: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One log entry with what the files that it names say."""

    number: int
    moment: int
    client: str
    action: str
    message: str
    snapshot: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What is visible after some number of log entries."""

    entries: tuple[Entry, ...] = ()
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    pinned: frozenset[str] = frozenset()

    def after(self, entry: Entry) -> State:
        """Return the state that an entry makes of this one."""
        places = dict(self.places)
        for place in entry.places:
            places[place.version] = (*places.get(place.version, ()), place)
        pinned = self.pinned | {entry.snapshot} if entry.action == "pin" else self.pinned
        return replace(self, entries=(*self.entries, entry), places=places, pinned=pinned)

    @property
    def visible(self) -> dict[str, Place]:
        """The versions that a reader finds, and where."""
        return {version: places[0] for version, places in self.places.items()}

    @property
    def known(self) -> dict[str, Place]:
        """The versions that a writer need not publish again."""
        return self.visible

    def first(self, recipe: str) -> str | None:
        """Return the version that `find` returns."""
        made = [place for place in self.known.values() if place.recipe == recipe]
        return (
            min(made, key=lambda place: (place.commit, place.name, place.version)).version if made else None
        )

    def latest(self, name: str) -> str | None:
        """Return the version that `latest` returns."""
        named = [place for place in self.visible.values() if place.name == name]
        return max(named, key=lambda place: (place.commit, place.version)).version if named else None


@dataclass(frozen=True, slots=True)
class Window:
    """From before an operation of `client` to after it, in moments of the storage."""

    client: str
    start: int
    end: int


class Truth:
    """The history of one storage, taken in by `catch_up`, and what was true in a window of it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taken = 0
        self._bodies: dict[str, bytes] = {}
        self._values: dict[str, list[tuple[int, Body]]] = defaultdict(list)
        self._states = [State()]
        self.late: set[int] = set()
        """Moments at which requests arrived whose operations had ended."""

    @property
    def state(self) -> State:
        """The state after all entries."""
        return self._states[-1]

    def catch_up(self) -> list[Entry]:
        """Take in what happened since the last call, and return the log entries among it."""
        before = len(self._states)
        for event in self._memory.events[self._taken :]:
            self._judge(event)
            self._values[event.key].append((event.moment, event.body))
            if event.body is None:
                self._bodies.pop(event.key, None)
            else:
                self._bodies[event.key] = event.body
            if event.body is not None and _ENTRY.fullmatch(event.key):
                self._states.append(self.state.after(self._entry(event, event.body)))
        self._taken = len(self._memory.events)
        return list(self.state.entries[before - 1 :])

    def states(self, window: Window) -> list[State]:
        """Return every state of the log that existed in a window."""
        moments = [entry.moment for entry in self.state.entries]
        return self._states[bisect_right(moments, window.start) : bisect_right(moments, window.end) + 1]

    def values(self, key: str, window: Window) -> list[Body]:
        """Return every content (None: absent) that an object had in a window."""
        before: list[Body] = [None]
        during: list[Body] = []
        for moment, body in self._values[key]:
            if moment <= window.start:
                before = [body]
            elif moment <= window.end:
                during.append(body)
        return before + during

    def snapshots_named(self, key: str, window: Window) -> list[str | None]:
        """Return every snapshot id (None: no such name) that a tag or head named in a window."""
        return [None if body is None else json.loads(body)["snapshot"] for body in self.values(key, window)]

    def wrote(self, key: str, window: Window) -> bool:
        """Tell whether an operation wrote an object in its window."""
        return any(
            event.client == window.client and event.key == key and event.moment not in self.late
            for event in self._memory.events
            if window.start < event.moment < window.end
        )

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that exist now."""
        return sorted(key for key in self._bodies if key.startswith(prefix))

    def _judge(self, event: Event) -> None:
        """Raise `Broken` for a write or delete that no rule of the layout allows."""
        old, key = self._bodies.get(event.key), event.key
        if old is not None and _ONCE.fullmatch(key):
            raise Broken(f"{key} was written a second time or deleted by {event.client}")
        named = _CONTENT.fullmatch(key)
        if named and event.body is not None and hashlib.sha256(event.body).hexdigest() != named[1]:
            raise Broken(f"{key} was given other content than its name says by {event.client}")
        number = _ENTRY.fullmatch(key)
        if number and int(number[1]) != len(self._states):
            raise Broken(f"{key} does not follow entry {len(self._states) - 1}")

    def _entry(self, event: Event, body: bytes) -> Entry:
        record = json.loads(body)
        number = len(self._states)
        places = [place for digest in record["indexes"] for place in self._index(digest, number)]
        if record["action"] == "publish" and not len(places) == record["elements"] > 0:
            raise Broken(f"entry {number} counts {record['elements']} elements and shows {len(places)}")
        if record["snapshot"] and f"snapshots/{record['snapshot']}.json" not in self._bodies:
            raise Broken(f"entry {number} pins a snapshot that is not there")
        return Entry(
            number,
            event.moment,
            event.client,
            record["action"],
            record["message"],
            record["snapshot"],
            tuple(places),
        )

    def _index(self, digest: str, number: int) -> Iterable[Place]:
        """Read an index file and every payload that it tells of, all of which must be there already."""
        table = pq.ParquetFile(io.BytesIO(self._bodies[f"index/{digest}.parquet"])).read(use_threads=False)
        for row in table.to_pylist():
            yield Place(
                row["version"], row["name"], row["recipe"], row["pack"], number, self._payload(row, number)
            )

    def _payload(self, row: Mapping[str, Any], number: int) -> bytes:
        pack = self._bodies.get(f"packs/{row['pack'][:2]}/{row['pack']}")
        payload = (pack or b"")[row["offset"] : row["offset"] + row["length"]]
        if pack is None or hashlib.sha256(payload).hexdigest() != row["digest"]:
            raise Broken(f"entry {number} shows {row['name']}, whose pack is missing or another")
        return payload
