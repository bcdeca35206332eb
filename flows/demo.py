"""Flow `demo`: the whole chain, from documents that every installation ships to an evaluated snapshot."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flows import watch
from flows.build_indexes import build_indexes
from flows.build_memory import build_memory
from flows.engine import flow
from flows.evaluate_attachment import evaluate_attachment
from flows.ingest_corpus import ingest_corpus
from flows.params import Params
from flows.pin_snapshot import pin_snapshot
from flows.pins import Pin, Stage, write_pin
from flows.place import open_store
from flows.settings import Settings
from flows.timing import work_seconds
from flows.train_codec import train_codec
from flows.train_core import train_core


class Chain:
    """The stages in order: times each of them, announces it, and leaves its pin."""

    def __init__(self, settings: Settings) -> None:
        self.pins: dict[Stage, Pin] = {}
        self.seconds: dict[str, float | None] = {}
        self.found: list[str] = []
        self._settings = settings
        self._store = open_store(settings)

    def run(self, stage: Stage, work: Callable[[], Pin]) -> Pin:
        """Run one stage and keep what it published."""
        with self.timed(stage):
            return self.keep(work())

    def keep(self, pin: Pin) -> Pin:
        """Write a pin for the commands that run single stages."""
        write_pin(self._settings.pins, pin)
        self.pins[pin.stage] = pin
        return pin

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a part of the chain and tell whoever watches; what commits nothing found its work done."""
        began, tip, stages = time.monotonic(), self._store.tip().sequence, set(self.pins)
        yield
        spent = time.monotonic() - began
        found = self._store.tip().sequence == tip
        if found:
            self.found.append(name)
        pins = [pin for stage, pin in self.pins.items() if stage not in stages]
        self.seconds[name] = work_seconds(self._settings.work_dir, name, pins, spent, found=found)
        watch.announce(name, spent)


def _flow(params: Params, settings: Settings) -> dict[str, object]:
    """Run every stage; finished ones are recognised in the store.

    Returns the pins, the seconds that the work of each stage took (when it was done), and the stages that
    were found.
    """
    chain = Chain(settings)
    with chain.timed("corpus"):
        corpus, tokenizer = (chain.keep(pin) for pin in ingest_corpus(params, settings))
    codec = chain.run("codec", lambda: train_codec(params, settings, corpus, tokenizer))
    memory = chain.run("memory", lambda: build_memory(params, settings, corpus, tokenizer, codec))
    _check_core_can_be_trained(settings, memory)
    indexes = chain.run("indexes", lambda: build_indexes(params, settings, memory, codec))
    snapshot = chain.run("snapshot", lambda: pin_snapshot(params, settings, memory, indexes))
    core = chain.run("core", lambda: train_core(params, settings, corpus, memory))
    chain.run("evaluation", lambda: evaluate_attachment(params, settings, corpus, snapshot, core))
    return {
        "pins": {stage: pin.model_dump(mode="json") for stage, pin in chain.pins.items()},
        "seconds": chain.seconds,
        "found": chain.found,
    }


def _check_core_can_be_trained(settings: Settings, memory: Pin) -> None:
    """Say before indexes are built that the memories are too few for the core, which comes after them."""
    from tasks.assembly import check_train_split

    assert memory.snapshot is not None, "the memory stage pins a snapshot"
    check_train_split(open_store(settings).snapshot(memory.snapshot))


demo = flow(_flow, name="demo")
