"""Simulated processes that work on one storage in memory, and the judgement of all that they did."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from store import Store
from store.errors import CellarError
from store.store import create_format
from tests.store.faulty import POSSIBLE, Call, Fault, FaultyBackend, ProcessKilled, Schedule, Wire, nothing
from tests.store.memory import Memory, MemoryBackend
from tests.store.model.operations import ELEMENTS, PAYLOADS, SETS, SNAPSHOTS, Operation, excused
from tests.store.model.scheduler import Scheduler
from tests.store.model.truth import Broken, Entry, State, Truth, Window

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
            self.error is not None and excused(self.error, self.faults)
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


@dataclass
class Workplace:
    """One storage, the processes that share it, and the truth about it."""

    memory: Memory = field(default_factory=Memory)
    wire: Wire = field(default_factory=Wire)
    processes: dict[int, Process] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    births: int = 0

    def __post_init__(self) -> None:
        self.truth = Truth(self.memory)
        create_format(MemoryBackend(self.memory))

    def race(self, programs: Sequence[Program], *, seed: int) -> None:
        """Run programs at the same time, in the interleaving of `seed`, and judge what came of it."""
        scheduler = Scheduler(seed)
        generator = random.Random(seed)

        def pause() -> None:
            scheduler.pause()
            if self.wire.under_way and generator.random() < _ARRIVALS:
                self._arrive()

        begun = len(self.done)
        tasks = [
            partial(self._run, self._process(number), program, pause)
            for number, program in enumerate(programs)
        ]
        scheduler.run(tasks)
        self.judge(list(self.done)[begun:])

    def restart(self, number: int) -> None:
        """Let a process open its store anew, without what it knew."""
        if number in self.processes:
            self.processes[number].store = None

    def settle(self) -> None:
        """Let all requests that are under way arrive."""
        while self.wire.under_way:
            self._arrive()
        self.judge([])

    def judge(self, labels: Sequence[str]) -> None:
        """Check all that happened to the storage since the last call, and the answers to `labels`."""
        known = self.truth.state
        for entry in self.truth.catch_up():
            self._judge_entry(entry, known)
            known = known.after(entry)
        for label in labels:
            done = self.done[label]
            if done.unknown:
                continue
            window = Window(done.client, done.start, done.end)
            if done.error is None:
                done.operation.check(done.result, self.truth, window, done.faults)
            elif isinstance(done.error, CellarError):
                done.operation.check_refusal(done.error, self.truth, window)

    def finish(self) -> None:
        """Check that a new process finds all that was ever acknowledged, whole, and nothing else."""
        self.settle()
        store = Store(MemoryBackend(self.memory))
        visible = self.truth.state.visible
        rows = store.catalog().rows()
        if sorted(row.version for row in rows) != sorted(visible):
            raise Broken("a new process sees other versions than those that were committed")
        for row in rows:
            if store.read(row) != PAYLOADS[row.version]:
                raise Broken(f"{row.name} has wrong bytes")
        for snapshot in self.truth.state.pinned:
            chosen = [ELEMENTS[n] for n in SETS[SNAPSHOTS.index(snapshot)]]
            found = {row.ref: payload for row, payload in store.snapshot(snapshot).stream()}
            if found != {element.ref: element.payload for element in chosen}:
                raise Broken(f"snapshot {snapshot[:12]} is not what was pinned")
        findings = store.verify(full=True).findings
        if findings:
            raise Broken(f"verify found damage where there is none: {findings}")

    def _arrive(self) -> None:
        before = self.memory.moment
        self.wire.arrive()
        self.truth.late.update(range(before + 1, self.memory.moment + 1))

    def _process(self, number: int) -> Process:
        """Return a living process; a dead one is followed by a new one."""
        process = self.processes.get(number)
        if process is None or process.backend.dead:
            self.births += 1
            client = f"process {number}.{self.births}"
            backend = FaultyBackend(
                MemoryBackend(self.memory, client=client), wire=self.wire, seed=self.births
            )
            process = self.processes[number] = Process(client, backend)
        return process

    def _run(self, process: Process, program: Program, pause: Callable[[], None]) -> None:
        backend = process.backend
        backend.pause, backend.schedule = pause, program.schedule(backend.calls)
        for operation in program.operations:
            label = f"operation {len(self.done)}"
            done = self.done[label] = Done(operation, process.client, start=self.memory.tick())
            met = len(backend.met)
            try:
                if process.store is None:
                    process.store = Store(backend)
                done.result = operation.run(process.store, label)
            except (CellarError, ProcessKilled) as error:
                done.error = error
            done.end = self.memory.tick()
            done.faults = tuple(fault for _, fault in backend.met[met:])
            if backend.dead:
                break
        backend.pause, backend.schedule = (lambda: None), nothing

    def _judge_entry(self, entry: Entry, before: State) -> None:
        done = self.done[entry.message]
        if any(earlier.message == entry.message for earlier in before.entries):
            raise Broken(f"{done.operation} made two entries")
        if entry.moment < done.start or (entry.moment > done.end and not done.unknown):
            raise Broken(f"{done.operation} made entry {entry.number} after it had ended")
        if done.error is not None and not done.unknown:
            raise Broken(f"{done.operation} was refused and made entry {entry.number} all the same")
        done.operation.check_entry(entry, before)
