"""Simulated processes that work on one storage in memory, and the judgement of all that they did."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from store import Store
from store.errors import CellarError
from store.store import create_format
from tests.store.faulty import POSSIBLE, Call, Fault, FaultyBackend, ProcessKilled, Schedule, Wire, nothing
from tests.store.memory import Memory, MemoryBackend
from tests.store.model.collecting import Collect
from tests.store.model.elements import BY_VERSION, members
from tests.store.model.operations import Operation
from tests.store.model.scheduler import Scheduler
from tests.store.model.truth import Broken, Entry, State, Truth, Window

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_ARRIVALS = 0.05
"""How likely a request that is under way arrives before a call."""


@dataclass
class Done:
    """What became of one operation: a result, an error, or nothing at all if its process died."""

    operation: Operation
    client: str
    start: int
    end: int = 0
    result: Any = None
    error: BaseException | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def unknown(self) -> bool:
        """Whether it may or may not have happened, and may still happen."""
        return isinstance(self.error, ProcessKilled) or (
            self.error is not None and self.operation.excuses(self.error, self.faults)
        )


@dataclass
class Process:
    """One client of the storage, with a `Store` of its own as long as it lives."""

    client: str
    backend: FaultyBackend
    store: Store | None = None


@dataclass(frozen=True)
class Trouble:
    """A fault that the first `times` calls after the first `after` ones meet if it is possible for them."""

    fault: Fault
    after: int
    times: int


@dataclass(frozen=True)
class Program:
    """What one process does in a race, and what it meets."""

    operations: Sequence[Operation]
    troubles: Sequence[Trouble] = ()

    def schedule(self, first: int) -> Schedule:
        """Return the faults of a run whose first call has the number `first`."""
        left = [trouble.times for trouble in self.troubles]

        def fault_of(call: Call) -> Fault | None:
            for number, trouble in enumerate(self.troubles):
                due = left[number] and call.number >= first + trouble.after
                if due and trouble.fault in POSSIBLE[call.kind]:
                    left[number] -= 1
                    return trouble.fault
            return None

        return fault_of


class Workplace:
    """One storage, the processes that share it, and the truth about it."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)
        self._memory = Memory(clock=lambda: _BEGINNING + self._ahead)
        self._wire = Wire()
        self._processes: dict[int, Process] = {}
        self._births = 0
        self._truth = Truth(self._memory)
        self.done: dict[str, Done] = {}
        """Every operation, by the message of its log entry."""
        create_format(MemoryBackend(self._memory))

    def race(self, programs: Sequence[Program], *, seed: int) -> None:
        """Run programs at the same time, in the interleaving of `seed`, and judge what came of it."""
        scheduler = Scheduler(seed)
        generator = random.Random(seed)

        def pause() -> None:
            scheduler.pause()
            if self._wire.under_way and generator.random() < _ARRIVALS:
                self._arrive()

        begun = len(self.done)
        tasks = [partial(self._run, self._process(n), program, pause) for n, program in enumerate(programs)]
        scheduler.run(tasks)
        self._judge(list(self.done)[begun:])

    def restart(self, number: int) -> None:
        """Let a process open its store anew, without what it knew."""
        if number in self._processes:
            self._processes[number].store = None

    def settle(self) -> None:
        """Let all requests that are under way arrive."""
        while self._wire.under_way:
            self._arrive()
        self._judge([])

    def forward(self, hours: int) -> None:
        """Let time pass; no request is under way and no listing is late for that long."""
        self.settle()
        self._wire.forget()
        self._ahead += timedelta(hours=hours)

    def finish(self) -> None:
        """Check that a new process finds all that should be there, whole, and that what is left can go."""
        self.settle()
        self._check_as_found()
        self._check_garbage_goes()

    def _judge(self, labels: Sequence[str]) -> None:
        """Check all that happened to the storage since the last call, and the answers to `labels`."""
        known = self._truth.state
        for entry in self._truth.catch_up():
            self._judge_entry(entry, known)
            known = known.after(entry)
        for label in labels:
            done = self.done[label]
            if done.unknown:
                continue
            window = Window(done.client, done.start, done.end)
            if done.error is None:
                done.operation.check(done.result, self._truth, window, done.faults)
            elif isinstance(done.error, CellarError):
                done.operation.check_refusal(done.error, self._truth, window)
        self._check_reachable()

    def _judge_entry(self, entry: Entry, before: State) -> None:
        done = self.done.get(entry.message) or self._maker_of(entry.client, entry.moment)
        if done is None or not done.start < entry.moment or (entry.moment > done.end and not done.unknown):
            raise Broken(f"entry {entry.number} was made by no operation of its time")
        if entry.message in self.done:
            if any(earlier.message == entry.message for earlier in before.entries):
                raise Broken(f"{done.operation} made two entries")
            if done.error is not None and not done.unknown:
                raise Broken(f"{done.operation} was refused and made entry {entry.number} all the same")
        done.operation.check_entry(entry, before, self._truth, Window(done.client, done.start, done.end))

    def _maker_of(self, client: str, moment: int) -> Done | None:
        """Return the operation of `client` that made a request which arrived at `moment`."""
        begun = [done for done in self.done.values() if done.client == client and done.start < moment]
        return next((done for done in reversed(begun) if moment < done.end or done.unknown), None)

    def _check_reachable(self) -> None:
        """Check that every version that is visible and every snapshot that has a name is there to read."""
        state = self._truth.state
        packs = {key.rpartition("/")[2] for key in self._truth.keys("packs/")}
        for place in state.visible.values():
            if place.pack not in packs:
                raise Broken(f"{place.name} is visible, but its pack is not there")
        names = self._truth.names(self._memory.clock())
        for snapshot in state.pinned | set(names.values()):
            if not self._truth.is_whole(snapshot):
                held = {key for key, named in names.items() if named == snapshot}
                if snapshot in state.pinned or not all(map(self._may_dangle, held)):
                    raise Broken(f"snapshot {snapshot[:12]} ({held or 'pinned'}) is not there to read")

    def _may_dangle(self, key: str) -> bool:
        """Whether a name was written by an operation that did not live to see that it came too late."""
        event = self._truth.last_write(key)
        done = self._maker_of(event.client, event.moment)
        return event.moment in self._truth.late or done is None or done.unknown

    def _check_as_found(self) -> None:
        store = Store(MemoryBackend(self._memory))
        visible, dangling = self._truth.state.visible, self._dangling()
        rows = store.catalog().rows()
        if sorted(row.version for row in rows) != sorted(visible):
            raise Broken("a new process sees other versions than those that were committed")
        for row in rows:
            if store.read(row) != BY_VERSION[row.version].payload:
                raise Broken(f"{row.name} has wrong bytes")
        for snapshot in self._truth.state.pinned:
            found = {row.ref: payload for row, payload in store.snapshot(snapshot).stream()}
            if found != {element.ref: element.payload for element in members(snapshot)}:
                raise Broken(f"snapshot {snapshot[:12]} is not what was pinned")
        findings = [finding for finding in store.verify(full=True).findings if finding.key not in dangling]
        if findings:
            raise Broken(f"verify found damage where there is none: {findings}")

    def _dangling(self) -> set[str]:
        names = self._truth.names(self._memory.clock())
        return {key for key, snapshot in names.items() if not self._truth.is_whole(snapshot)}

    def _check_garbage_goes(self) -> None:
        """Collect until nothing is left to collect, and check that only what has a name is left, whole."""
        store = Store(MemoryBackend(self._memory, client="the last collector"))
        for _ in range(4):
            self.forward(50)
            label = f"operation {len(self.done)}"
            done = self.done[label] = Done(Collect(0), "the last collector", self._memory.tick())
            done.result = Collect(0).run(store, label)
            done.end = self._memory.tick()
            self._judge([label])
        named = set(self._truth.names(self._memory.clock()).values()) - self._truth.state.gone
        needed = {element.version for snapshot in named for element in members(snapshot)}
        kept = {place.pack for version, place in self._truth.state.visible.items() if version in needed}
        reached = {place.pack for place in self._truth.state.visible.values()}
        packs = {key.rpartition("/")[2] for key in self._truth.keys("packs/")}
        if not needed <= self._truth.state.visible.keys() or not kept <= reached <= packs:
            raise Broken("garbage collection took something that has a name")
        if not named and packs:
            raise Broken(f"nothing has a name, and {len(packs)} packs are left")
        self._check_as_found()

    def _arrive(self) -> None:
        before = self._memory.moment
        self._wire.arrive()
        self._truth.late.update(range(before + 1, self._memory.moment + 1))

    def _process(self, number: int) -> Process:
        """Return a living process; a dead one is followed by a new one."""
        process = self._processes.get(number)
        if process is None or process.backend.dead:
            self._births += 1
            client = f"process {number}.{self._births}"
            inner = MemoryBackend(self._memory, client=client)
            process = Process(client, FaultyBackend(inner, wire=self._wire, seed=self._births))
            self._processes[number] = process
        return process

    def _run(self, process: Process, program: Program, pause: Callable[[], None]) -> None:
        backend = process.backend
        backend.pause, backend.schedule = pause, program.schedule(backend.calls)
        for operation in program.operations:
            label = f"operation {len(self.done)}"
            done = self.done[label] = Done(operation, process.client, start=self._memory.tick())
            met = len(backend.met)
            try:
                if process.store is None:
                    process.store = Store(backend)
                done.result = operation.run(process.store, label)
            except (CellarError, ProcessKilled) as error:
                done.error = error
            done.end = self._memory.tick()
            done.faults = tuple(fault for _, fault in backend.met[met:])
            if backend.dead:
                break
        backend.pause, backend.schedule = (lambda: None), nothing
