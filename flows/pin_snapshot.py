"""Flow `pin-snapshot`: one exact set of memories, what they require, and the indexes built from them."""

from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store
from flows.provenance.corpora import made_from, recorded_corpora
from flows.settings import Settings
from store import Ref

ID_DIGITS = 12
"""Digits of a snapshot id in the tag that names it."""


def _pin(settings: Settings, memory_snapshot: str, indexes: list[str], name: str) -> str:
    store = open_store(settings)
    refs = [row.ref for row in store.snapshot(memory_snapshot).rows()]
    pinned = store.pin(
        [*refs, *(Ref.parse(text) for text in indexes)],
        message=f"Pin {name} with its indexes",
        run=made_from(recorded_corpora(store, memory_snapshot)),
    )
    store.tag(f"{name}-{pinned.id[:ID_DIGITS]}", pinned.id)
    head = store.head(name)
    if head != pinned.id:
        store.move_head(name, pinned.id, expect=head)
    return pinned.id


_task = bind(_pin, name="pin snapshot")


def _flow(params: Params, settings: Settings, memory: Pin, indexes: Pin) -> Pin:
    """Pin memories and indexes together, tag the snapshot for good, and move the corpus' head to it."""
    assert memory.snapshot is not None, "the memory stage pins a snapshot"
    identity = _task(settings, memory.snapshot, list(indexes.refs), params.corpus.name)
    return Pin(stage="snapshot", snapshot=identity)


pin_snapshot = flow(_flow, name="pin-snapshot")
