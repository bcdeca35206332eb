"""Packs: whether all that are needed are there with their sizes, and the bytes of all or some of them."""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

from store.backend import Backend
from store.errors import KeyMissing
from store.format import PACK_PREFIX, RESTORE, pack_key, sha256
from store.prefetch import prefetched
from store.verify.reach import Place
from store.verify.report import Cursor
from store.verify.survey import Survey

_THREADS = 4
_RANGE_BYTES = 8 * 1024**2
"""What one request asks for: with the threads, and a copy, it bounds the memory of reading packs."""


def chosen(packs: Iterable[str], sample: float, seed: int) -> list[str]:
    """Return the packs that a pass over a share of them reads; the same ones whoever asks, and when.

    Whether a pack is chosen depends on its digest and the seed alone, so packs that come or go change nothing
    for the others. At least one is chosen.
    """
    draws = {pack: int(sha256(f"{seed} {pack}".encode())[:16], 16) / 2**64 for pack in packs}
    found = sorted(pack for pack, draw in draws.items() if draw < sample)
    return found or sorted(draws, key=lambda pack: draws[pack])[: 1 if sample else 0]


class PackCheck:
    """The packs of a store, and a pass over the bytes of all or some of them.

    The pass starts where an earlier run stopped, at `cursor`, which moves on with every pack; at `until` (on
    the monotonic clock) it stops, but not before it has read one pack. `vanished` are packs that were listed
    and are gone.
    """

    def __init__(
        self, survey: Survey, start: Cursor, *, until: float | None, keep: Callable[[Cursor], None]
    ) -> None:
        self._survey = survey
        self._keep = keep
        self._until = until
        self.sizes = _stored_packs(survey)
        self.cursor = start
        self.chosen = chosen(self.sizes, start.sample, start.seed)
        self.complete = True
        self.vanished: set[str] = set()

    def unfit(self, needed: Mapping[str, int | None]) -> dict[str, str]:
        """Return, for packs of `needed` that are missing or have another size, what is wrong."""
        problems = {}
        for digest, size in needed.items():
            key, found = pack_key(digest), self.sizes.get(digest)
            if found is None or digest in self.vanished:
                info = self._survey.backend.info(key)  # it may have been written since the listing
                found = info.size if info else None
            if found is None:
                problems[digest] = f"{key} is missing; {RESTORE}"
            elif size is not None and found != size:
                problems[digest] = f"{key} has {found} bytes instead of {size}; {RESTORE}"
        return problems

    def read(self, skip: Collection[str]) -> list[str]:
        """Read the packs of the pass but `skip`, several at a time, and return those that are damaged.

        Packs that earlier runs of the pass found damaged are read again first.
        """
        again = [pack for pack in self.cursor.damaged if pack in self.sizes and pack not in skip]
        damaged = [pack for pack, intact in self._results(again) if not intact]
        self.cursor = replace(self.cursor, damaged=tuple(damaged))
        rest = self.chosen[bisect_right(self.chosen, self.cursor.after) :]
        waiting = [pack for pack in rest if pack not in skip]
        for _ in range(len(self.sizes) - len(waiting)):
            self._survey.tick()
        with closing(self._results(waiting)) as results:
            for pack, intact in results:
                self.cursor = replace(
                    self.cursor,
                    after=pack,
                    packs=self.cursor.packs + 1,
                    bytes=self.cursor.bytes + self.sizes[pack],
                    damaged=self.cursor.damaged if intact else (*self.cursor.damaged, pack),
                )
                self._keep(self.cursor)
                self._survey.tick()
                if self._until is not None and time.monotonic() >= self._until:
                    self.complete = pack == waiting[-1]
                    break
        return list(self.cursor.damaged)

    def _results(self, packs: list[str]) -> Generator[tuple[str, bool], None, None]:
        """Yield, in order, each pack and whether its bytes are those of its name."""
        stop = threading.Event()
        work = prefetched(
            partial(self._is_intact, stop), packs, threads=_THREADS, weigh=lambda _: 1, limit=_THREADS
        )
        try:
            for pack, intact in zip(packs, work, strict=False):
                self._survey.bytes_read += self.sizes[pack]
                yield pack, intact
        finally:
            stop.set()  # or an interrupt would wait until whole packs are read
            work.close()

    def _is_intact(self, stop: threading.Event, pack: str) -> bool:
        total = hashlib.sha256()
        for offset in range(0, self.sizes[pack], _RANGE_BYTES):
            if stop.is_set():
                return True  # nobody asks any more
            try:
                total.update(self._survey.backend.read(pack_key(pack), offset=offset, length=_RANGE_BYTES))
            except KeyMissing:
                self.vanished.add(pack)
                return True
        return total.hexdigest() == pack


def _stored_packs(survey: Survey) -> dict[str, int]:
    """Return every pack that is listed, with its size, in the order of digests."""
    named = ((key.rpartition("/")[2], key) for key in survey.keys(PACK_PREFIX))
    return {digest: survey.sizes[key] for digest, key in sorted(named) if key == pack_key(digest)}


def damage_in(backend: Backend, pack: str, places: Collection[Place]) -> tuple[str, list[str]]:
    """Return what is wrong with a damaged pack, and the elements whose payload no longer has its digest."""
    key = pack_key(pack)
    hurt = []
    for place in sorted(places, key=lambda place: place.offset):
        data = backend.read(key, offset=place.offset, length=place.length)
        if len(data) != place.length or sha256(data) != place.digest:
            hurt.append(place.element)
    what = f"{len(hurt)} of {len(places)} payloads" if hurt else "its framing, but no payload"
    return f"{key} is damaged: {what}; {RESTORE}", hurt
