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
from datetime import datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

from tests.store.memory import Event, Memory

_ENTRY = re.compile(r"log/(\d{20})\.json")
_ONCE = re.compile(r"format\.json|log/\d{20}\.json|refs/tags/.*|snapshots/.*\.json")
_HEAD = re.compile(r"snapshots/[0-9a-f]{64}\.json")
_CONTENT = re.compile(
    r"(?:packs/../|index/|snapshots/|builds/[^/]+/parts/)([0-9a-f]{64})(?:\.parquet|)|gc/([0-9a-f]{64})\.json"
)
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
    """One log entry with what the files that it names say; `packs` and `snapshots` are those it removes."""

    number: int
    moment: int
    time: datetime
    client: str
    action: str
    message: str
    snapshot: str
    places: tuple[Place, ...]
    packs: frozenset[str]
    snapshots: frozenset[str]


@dataclass(frozen=True, slots=True)
class State:
    """What some number of log entries say: what is visible, and what is condemned, being removed or gone."""

    entries: tuple[Entry, ...] = ()
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    pinned: frozenset[str] = frozenset()
    condemned: frozenset[str] = frozenset()
    """Packs and snapshots."""
    dying: frozenset[str] = frozenset()
    """Packs and snapshots."""
    gone: frozenset[str] = frozenset()
    dead: Mapping[str, int] = field(default_factory=dict)

    def after(self, entry: Entry) -> State:
        """Return the state that an entry makes of this one."""
        made = replace(self, entries=(*self.entries, entry))
        match entry.action:
            case "publish":
                places = dict(self.places)
                for place in entry.places:
                    places[place.version] = (*places.get(place.version, ()), place)
                condemned = self.condemned - {place.pack for place in entry.places}
                return replace(made, places=places, condemned=condemned)
            case "pin":
                pin = {entry.snapshot}
                return replace(
                    made, pinned=self.pinned | pin, condemned=self.condemned - pin, gone=self.gone - pin
                )
            case "condemn":
                return replace(made, condemned=entry.packs | entry.snapshots)
            case "collect":
                return replace(
                    made,
                    condemned=frozenset(),
                    dying=entry.packs | entry.snapshots,
                    dead={**self.dead, **dict.fromkeys(entry.packs, entry.number)},
                    gone=self.gone | entry.snapshots,
                    pinned=self.pinned - entry.snapshots,
                )
            case "swept":
                return replace(made, dying=frozenset())
        raise Broken(f"entry {entry.number} has the action {entry.action!r}")

    @property
    def visible(self) -> dict[str, Place]:
        """The versions that a reader finds, and where: in a pack that is not condemned if there is one."""
        places = {**{v: first for v, (first, *_) in self._living.items()}, **self.known}
        return dict(sorted(places.items()))

    @property
    def known(self) -> dict[str, Place]:
        """The versions that a writer need not publish again."""
        lasting = {
            v: [p for p in places if p.pack not in self.condemned] for v, places in self._living.items()
        }
        return {version: places[0] for version, places in lasting.items() if places}

    @property
    def _living(self) -> dict[str, list[Place]]:
        living = {
            version: [place for place in places if place.commit > self.dead.get(place.pack, 0)]
            for version, places in self.places.items()
        }
        return {version: places for version, places in living.items() if places}

    def last(self, action: str, snapshot: str = "") -> Entry | None:
        """Return the newest entry of an action (on a snapshot)."""
        made = (e for e in reversed(self.entries) if e.action == action and e.snapshot == snapshot)
        return next(made, None)

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

    def deleted(self, window: Window) -> bool:
        """Tell whether somebody else deleted anything in a window."""
        return any(
            event.body is None and event.client != window.client and window.start < event.moment < window.end
            for event in self._memory.events
        )

    def names(self, now: datetime) -> dict[str, str]:
        """Return every tag, head and hold that counts at `now`, with the snapshot that it names."""
        found = {}
        for key in self.keys("refs/") + self.keys("pins/"):
            record = json.loads(self._bodies[key])
            age = now - self.last_write(key).time
            if key.startswith("refs/") or age < timedelta(seconds=record["seconds"]):
                found[key] = record["snapshot"]
        return found

    def was_named(self, snapshot: str, window: Window) -> bool:
        """Tell whether a tag or head named a snapshot all through a window."""
        keys = [key for key in self._values if key.startswith("refs/")]
        return any(set(self.snapshots_named(key, window)) == {snapshot} for key in keys)

    def last_write(self, key: str) -> Event:
        """Return the last event of an object."""
        return next(event for event in reversed(self._memory.events) if event.key == key)

    def is_whole(self, snapshot: str) -> bool:
        """Tell whether every byte of a snapshot is there."""
        return self._is_whole(self._bodies.get(f"snapshots/{snapshot}.json"))

    def _is_whole(self, head: Body) -> bool:
        rows = head and self._bodies.get(f"snapshots/{json.loads(head)['rows']}.parquet")
        return bool(rows) and all(self._payload(row) is not None for row in _table(rows or b""))

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that exist now."""
        return sorted(key for key in self._bodies if key.startswith(prefix))

    def _judge(self, event: Event) -> None:
        """Raise `Broken` for a write or delete that no rule of the layout allows."""
        old, key = self._bodies.get(event.key), event.key
        if event.body is None:
            self._judge_delete(event)
        elif old is not None and _ONCE.fullmatch(key) and not self._renews_head(event):
            raise Broken(f"{key} was written a second time by {event.client}")
        named = _CONTENT.fullmatch(key)
        if named and event.body is not None and hashlib.sha256(event.body).hexdigest() not in named.groups():
            raise Broken(f"{key} was given other content than its name says by {event.client}")
        number = _ENTRY.fullmatch(key)
        if number and int(number[1]) != len(self._states):
            raise Broken(f"{key} does not follow entry {len(self._states) - 1}")

    def _judge_delete(self, event: Event) -> None:
        """Raise `Broken` unless what is deleted was collected, or is a name that its maker takes back."""
        digest = event.key.rpartition("/")[2].removesuffix(".json")
        allowed = True
        if event.key.startswith("packs/"):
            visible = {place.pack for place in self.state.visible.values()}
            allowed = digest in self.state.dying and digest not in visible
        elif _HEAD.fullmatch(event.key):
            allowed = digest in self.state.dying
        elif event.key.startswith("refs/"):
            allowed = self.last_write_before(event).client == event.client
        elif _ENTRY.fullmatch(event.key) or event.key == "format.json":
            allowed = False
        if not allowed:
            raise Broken(f"{event.key} was deleted by {event.client}")

    def last_write_before(self, event: Event) -> Event:
        """Return the event of the same object before `event`."""
        earlier = self._memory.events[: self._memory.events.index(event)]
        return next(found for found in reversed(earlier) if found.key == event.key)

    def _entry(self, event: Event, body: bytes) -> Entry:
        record = json.loads(body)
        number = len(self._states)
        places = [place for digest in record["indexes"] for place in self._index(digest, number)]
        if record["action"] == "publish" and not len(places) == record["elements"] > 0:
            raise Broken(f"entry {number} counts {record['elements']} elements and shows {len(places)}")
        if record["snapshot"] and f"snapshots/{record['snapshot']}.json" not in self._bodies:
            raise Broken(f"entry {number} pins a snapshot that is not there")
        removal: dict[str, list[str]] = {"packs": [], "snapshots": []}
        if record.get("removal"):
            removal = json.loads(self._bodies[f"gc/{record['removal']}.json"])
        return Entry(
            number,
            event.moment,
            event.time,
            event.client,
            record["action"],
            record["message"],
            record["snapshot"],
            tuple(places),
            frozenset(removal["packs"]),
            frozenset(removal["snapshots"]),
        )

    def _index(self, digest: str, number: int) -> Iterable[Place]:
        """Read an index file and every payload that it tells of, all of which must be there already."""
        for row in _table(self._bodies[f"index/{digest}.parquet"]):
            payload = self._payload(row)
            if payload is None:
                raise Broken(f"entry {number} shows {row['name']}, whose pack is missing or another")
            yield Place(row["version"], row["name"], row["recipe"], row["pack"], number, payload)

    def _renews_head(self, event: Event) -> bool:
        """Tell whether a snapshot's record gives way to one of the same snapshot, whose every byte is there.

        A pin that cannot read the record that it finds, if only for damage on the way, writes its own.
        """
        if event.body is None or not _HEAD.fullmatch(event.key):
            return False
        return event.key == f"snapshots/{json.loads(event.body)['id']}.json" and self._is_whole(event.body)

    def _payload(self, row: Mapping[str, Any]) -> bytes | None:
        """Return the payload of a row, None if its pack is missing or another."""
        pack = self._bodies.get(f"packs/{row['pack'][:2]}/{row['pack']}")
        payload = (pack or b"")[row["offset"] : row["offset"] + row["length"]]
        return payload if pack and hashlib.sha256(payload).hexdigest() == row["digest"] else None


def _table(body: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(io.BytesIO(body)).read(use_threads=False).to_pylist()
    return rows
