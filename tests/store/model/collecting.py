"""Garbage collection, and the rules that no collection may break."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from store import Store
from store.errors import CellarError, CollectorBusy, ConflictError
from store.gc import collect
from tests.store.faulty import DAMAGE, Fault
from tests.store.model.elements import BY_VERSION
from tests.store.model.operations import Operation, listing_lied, sometime
from tests.store.model.truth import Broken, Entry, State, Truth, Window

GRACE = timedelta(hours=25)
"""A little longer than a lease."""


@dataclass(frozen=True)
class Collect(Operation):
    """Run the collector once."""

    retain_hours: int

    def run(self, store: Store, label: str) -> Any:
        return collect(store, apply=True, grace=GRACE, retain=self._retain)

    @property
    def _retain(self) -> timedelta:
        return timedelta(hours=self.retain_hours)

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        if not result.applied:
            raise Broken(f"{self} did nothing")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, CollectorBusy):
            super().check_refusal(error, truth, window)
        turns = [json.loads(body)["seconds"] if body else 0 for body in truth.values("gc/turn.json", window)]
        sometime(turns, bool, f"{self} had to wait")

    def excuses(self, error: BaseException, faults: Collection[Fault]) -> bool:
        refused = isinstance(error, (CellarError, ConflictError)) and listing_lied(faults)
        # A turn that cannot be read may be somebody's: the collector waits until it is over.
        unread = isinstance(error, CollectorBusy) and not DAMAGE.isdisjoint(faults)
        return refused or unread or super().excuses(error, faults)

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        """A collection takes only what was condemned long ago and nothing keeps; what stays is complete."""
        after = before.after(entry)
        match entry.action:
            case "condemn":
                allowed = not before.dying
            case "collect":
                condemned = before.last("condemn")
                allowed = (
                    not before.dying
                    and condemned is not None
                    and entry.time - condemned.time >= GRACE
                    and entry.packs | entry.snapshots <= before.condemned
                )
                self._check_kept(entry, before, after, truth, window)
            case "swept":
                allowed = bool(before.dying)
            case _:
                allowed = False
        if not allowed:
            raise Broken(f"{self} made entry {entry.number}, {entry.action}, against its rules")

    def _check_kept(self, entry: Entry, before: State, after: State, truth: Truth, window: Window) -> None:
        for version, place in before.visible.items():
            newest = before.entries[place.commit - 1]
            if version not in after.visible and entry.time - newest.time < self._retain:
                raise Broken(f"entry {entry.number} takes {place.name}, which is young")
        for version in after.visible:
            if not after.visible.keys() >= set(BY_VERSION[version].requires):
                raise Broken(f"entry {entry.number} takes what {BY_VERSION[version].full_name} requires")
        for snapshot in entry.snapshots:
            pin = before.last("pin", snapshot)
            if pin is not None and entry.time - pin.time < self._retain:
                raise Broken(f"entry {entry.number} takes snapshot {snapshot[:12]}, which is young")
            if truth.was_named(snapshot, Window(window.client, window.start, entry.moment)):
                raise Broken(f"entry {entry.number} takes snapshot {snapshot[:12]}, which has a name")
