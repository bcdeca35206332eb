"""The parts of `benchmarks.large_store`, each run in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from store import Element, Row, Snapshot, Store
    from tasks.codec import Codec
    from tasks.evaluation import AttachmentTask, EvaluationSetting, Evaluator, Plan, Sample
    from tasks.memory import MemoryCells
    from tasks.retrieval import Index

SEED = 29
SYNTHETIC = "memory/synthetic/"
CANDIDATES = 64
_SAME = 1e-4
"""Nats per target token: products of another shape may differ in their last bits."""
_COMMIT = 4_000
_TEXTS = 500
"""Texts encoded together."""


@dataclass(frozen=True)
class _Place:
    """The grown store, and what the demo's pin files name in it."""

    folder: Path

    @cached_property
    def store(self) -> Store:
        from store import Store

        return Store.open(f"file:{self.folder / 'store'}")

    def pin(self, stage: Any) -> Any:
        from flows.pins import read_pin

        return read_pin(self.folder / "pins", stage)

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.store.snapshot(self.pin("snapshot").snapshot)

    @cached_property
    def codec(self) -> Codec:
        from tasks.codec import load_codec

        return load_codec(self.snapshot.read(self.snapshot.one("codec")))

    def setting(self, snapshot: Snapshot) -> EvaluationSetting:
        """What an evaluation of the demo's own documents reads, with another snapshot behind it."""
        from tasks.evaluation import EvaluationSetting

        shards = sorted(self.pin("corpus").references("corpus"), key=lambda ref: ref.name)
        opened = EvaluationSetting.open(self.store, self.snapshot, self.pin("core").one("core"), shards)
        return replace(opened, snapshot=snapshot)


def grow(*, folder: str, elements: int, tokens_each: int) -> dict[str, Any]:
    """Publish memories of synthetic texts, until the store has so many."""
    from benchmarks.scale_text import synthetic_texts
    from tasks.retrieval import Readout

    place = _Place(Path(folder))
    store, own = place.store, len(place.snapshot.rows("memory"))
    readout = Readout.from_bytes(place.snapshot.read("index/main/readout"))
    source = [readout.tokens(row) for row in range(len(readout))]
    made = max(0, elements - own)
    tokens_N, start_E1 = synthetic_texts(
        source, elements=made, tokens=made * tokens_each, repeated=0.05, seed=SEED
    )
    texts = [tokens_N[begin:end] for begin, end in pairwise(start_E1.tolist())]
    began, size = time.perf_counter(), 0
    asked = right = 0
    waiting: list[Element] = []
    for first in range(0, len(texts), _TEXTS):
        part = texts[first : first + _TEXTS]
        new, cells = _memories(place, first, part)
        asked += len(part[0])
        right += _decoded(place.codec, cells[0].dequantise(), part[0])
        size += sum(len(element.payload) for element in new)
        waiting += new
        if len(waiting) >= _COMMIT or first + _TEXTS >= len(texts):
            store.publish(waiting, message=f"synthetic memories up to {first + len(part):,}")
            waiting = []
    return {
        "own": own,
        "made": made,
        "tokens": len(tokens_N),
        "token_recall": right / max(1, asked),
        "bytes": size,
        "seconds": time.perf_counter() - began,
    }


def _memories(
    place: _Place, first: int, texts: Sequence[np.ndarray]
) -> tuple[list[Element], list[MemoryCells]]:
    """Memories of some texts, all blocks encoded together, numbered from `first` on."""
    import torch

    from store import Element
    from tasks.codec import blocks
    from tasks.memory import MemoryCells, encode_cells

    codec, width = place.codec, place.codec.architecture.block_tokens
    parts = [blocks(text, width)[0] for text in texts]
    with torch.no_grad():
        cells_RC = torch.cat([codec.encode(chunk) for chunk in torch.cat(parts).split(512)])
    stored = [
        MemoryCells.from_float(cells_NC, len(text), "bfloat16")
        for text, cells_NC in zip(texts, cells_RC.split([len(part) for part in parts]), strict=True)
    ]
    requires = (place.snapshot.one("codec").version,)
    prefix = SYNTHETIC.removeprefix("memory/")
    elements = [
        Element("memory", f"{prefix}{number:06d}", encode_cells(cells), requires=requires)
        for number, cells in enumerate(stored, start=first)
    ]
    return elements, stored


def _decoded(codec: Codec, cells_NC: Any, text: np.ndarray) -> int:
    """Tokens of a text that its cells decode to."""
    import torch

    with torch.no_grad():
        ids_BT = codec.logits(cells_NC, codec.parents(cells_NC)).argmax(-1)
    return int((ids_BT.flatten()[: len(text)].numpy() == text).sum())


def index(*, folder: str, elements: int, params: str | None, smaller: str | None) -> dict[str, Any]:
    """Index the demo's memories and the first synthetic ones, so many in all, and pin them together.

    What the index in the snapshot `smaller` holds is not decoded again.
    """
    from flows.params import load_params
    from tasks.retrieval.step import index_memories

    place = _Place(Path(folder))
    store, own = place.store, place.snapshot
    rows = own.rows("memory") + _synthetic(store)[: elements - len(own.rows("memory"))]
    began = time.perf_counter()
    refs = index_memories(
        store,
        load_params(Path(params) if params else None).retrieval,
        memories=rows,
        codec=own.one("codec"),
        earlier=None if smaller is None else store.snapshot(smaller).get("index/main/readout"),
    )
    seconds = time.perf_counter() - began
    support = [own.one(kind).ref for kind in ("codec", "tokenizer", "reranker")]
    pinned = store.pin([*(row.ref for row in rows), *support, *refs.all], message=f"{elements:,} memories")
    return {"snapshot": pinned.id, "seconds": seconds, "elements": len(rows)}


def _synthetic(store: Store) -> list[Row]:
    rows = [row for row in store.catalog().rows() if row.name.startswith(SYNTHETIC)]
    return sorted(rows, key=lambda row: row.name)


def answer(*, folder: str, snapshot: str, params: str | None, latency: int) -> dict[str, Any]:
    """Find evidence for all tasks in one store and answer them with it, then some of them one by one."""
    from tasks.evaluation import Condition

    place = _Place(Path(folder))
    began = time.perf_counter()
    asked = _Asked(place, snapshot, params)
    opened = time.perf_counter() - began
    found = asked.index.search_many([task.cue for task in asked.tasks], CANDIDATES)
    candidate = [
        task.element in {c.name for c in hits} for task, hits in zip(asked.tasks, found, strict=True)
    ]
    samples = asked.answer(asked.plan[Condition.RETRIEVED])
    covered = [asked.covers(task, sample) for task, sample in zip(asked.tasks, samples, strict=True)]
    single = np.array([list(asked.timed(number)) for number in range(min(latency, len(asked.tasks)))])
    width = place.codec.architecture.slot_width
    return {
        "tasks": len(asked.tasks),
        "open_seconds": opened,
        "candidate_recall": float(np.mean(candidate)),
        "coverage": float(np.mean(covered)),
        "own_document": float(np.mean([s.evidence == s.element for s in samples])),
        "greedy_exact": float(np.mean([s.exact for s in samples])),
        "nll": float(np.mean([s.nll for s in samples])),
        "active_values": float(np.mean([s.attached for s in samples])) * width,
        "bytes_read": float(np.mean([s.bytes_read for s in samples])),
        "search_p50_ms": 1000 * float(np.median(single[:, 0])),
        "p50_ms": 1000 * float(np.median(single[:, 1])),
        "p99_ms": 1000 * float(np.percentile(single[:, 1], 99)),
    }


class _Asked:
    """Tasks of the demo's test-split documents, asked of one snapshot."""

    def __init__(self, place: _Place, snapshot: str, params: str | None) -> None:
        from flows.params import load_params
        from tasks.retrieval import Index

        self.place = place
        self.params = load_params(Path(params) if params else None).evaluation
        self.setting = place.setting(place.store.snapshot(snapshot))
        self.index: Index = Index.open(place.store, self.setting.snapshot)
        self.tasks, self.plan = self.setting.prepare(self.index, self.params)
        # No task is cut from a synthetic text, but any may be found for one.
        read = self.index.readout
        others = {n: read.tokens(row) for n, row in read.row_of.items() if n.startswith(SYNTHETIC)}
        self.setting = replace(self.setting, texts={**self.setting.texts, **others})

    def evaluator(self, plan: Plan) -> Evaluator:
        """What answers with the elements that a plan names, which are read here."""
        from tasks.evaluation import Evaluator

        setting = self.setting
        reader = setting.reader(plan, self.params)
        return Evaluator(
            setting.core, reader, lambda ids: setting.tokenizer.decode(ids), self.params.batch_tasks
        )

    def answer(self, placements: Sequence[Any], numbers: Sequence[int] | None = None) -> list[Sample]:
        """The tasks, or those of some numbers, with one element each, weighed as retrieved evidence is."""
        from tasks.evaluation import Condition

        chosen = range(len(self.tasks)) if numbers is None else numbers
        plan = {Condition.RETRIEVED: [placements[number] for number in chosen]}
        samples, _ = self.evaluator(plan).run([self.tasks[number] for number in chosen], plan)
        return samples

    def timed(self, number: int) -> Iterator[float]:
        """Seconds to find the evidence of one task, and to have read, attached and answered with it."""
        from tasks.evaluation import Condition

        task = self.tasks[number]
        began = time.perf_counter()
        shown = self.placed(self.index, [task])
        yield time.perf_counter() - began
        self.evaluator({Condition.RETRIEVED: shown}).batch(Condition.RETRIEVED, [task], shown, number)
        yield time.perf_counter() - began

    @staticmethod
    def placed(index: Index, tasks: Sequence[AttachmentTask]) -> list[Any]:
        """The best element for each cue, laid along the task; None where there is none."""
        from tasks.evaluation import Placement

        found = index.search_many([task.cue for task in tasks], 1)
        return [
            Placement(hits[0].name, hits[0].offset - len(task.cue)) if hits else None
            for task, hits in zip(tasks, found, strict=True)
        ]

    def covers(self, task: AttachmentTask, sample: Sample) -> bool:
        """Whether the evidence is the task's own element there, or one that decodes to the task's answer."""
        row = self.index.readout.row_of.get(sample.evidence)
        if row is None:
            return False
        begin = sample.evidence_start + len(task.cue)
        if sample.evidence == task.element and begin == task.offset:
            return True
        held = self.index.readout.tokens(row)[begin : begin + len(task.target)]
        return np.array_equal(held, task.target)

    def failed_first(self, task: AttachmentTask, sample: Sample) -> str:
        """What a wrong answer with retrieved evidence is due to."""
        if not self.covers(task, sample):
            return "retrieval"
        row = self.index.readout.row_of[sample.evidence]
        begin = sample.evidence_start + len(task.cue)
        held = self.index.readout.tokens(row)[begin : begin + len(task.target)]
        if not np.array_equal(held, task.target):
            return "codec"
        return "weight" if sample.weight == 0 else "core"


def localise(*, folder: str, snapshot: str, params: str | None, most: int) -> dict[str, Any]:
    """Leave answering elements out one by one, then replace one: which tasks change, and by how much."""
    from tasks.evaluation import Condition
    from tasks.retrieval import Overlay

    asked = _Asked(_Place(Path(folder)), snapshot, params)
    before = asked.answer(asked.plan[Condition.RETRIEVED])
    users: dict[str, list[int]] = {}
    for number, sample in enumerate(before):
        users.setdefault(sample.evidence, []).append(number)
    named = [name for name in sorted(users) if name and not name.startswith(SYNTHETIC)]
    chosen = [named[at] for at in np.random.default_rng(SEED).permutation(len(named))[:most]]
    rises, others, removals = [], 0, []
    for name in chosen:
        overlay = Overlay(asked.index)
        began = time.perf_counter()
        overlay.remove(name)
        removals.append(1000 * (time.perf_counter() - began))
        shown = asked.placed(overlay.index, asked.tasks)
        was_shown = asked.plan[Condition.RETRIEVED]
        elsewhere = {n for n, (was, now) in enumerate(zip(was_shown, shown, strict=True)) if was != now}
        others += len(elsewhere - set(users[name]))
        after = asked.answer(shown, users[name])
        rises += [now.nll - before[n].nll for n, now in zip(users[name], after, strict=True)]
    moved = [abs(rise) > _SAME for rise in rises]
    reasons = ("retrieval", "codec", "weight", "core")
    wrong = [asked.failed_first(t, s) for t, s in zip(asked.tasks, before, strict=True) if not s.exact]
    return {
        "left_out": len(chosen),
        "rise": float(np.mean(rises)),
        "moved_share": float(np.mean(moved)),
        "others_moved": others,
        "remove_ms": float(np.median(removals)),
        "failures": {reason: wrong.count(reason) for reason in reasons},
        **_replaced(asked, before, users, chosen[0]),
    }


def _replaced(
    asked: _Asked, before: Sequence[Sample], users: dict[str, list[int]], name: str
) -> dict[str, Any]:
    """Pin a snapshot in which one element has another version, and ask everything again."""
    from store import Element
    from tasks.evaluation import Condition
    from tasks.memory import MemoryCells, decode_cells, encode_cells

    place, own = asked.place, asked.setting.snapshot
    codec = place.codec.architecture
    old = decode_cells(own.read(own.get(name)), codec)
    # What decodes otherwise everywhere: the cells of the document in reverse order.
    cells = MemoryCells.from_float(old.dequantise().flip(0) * -1, old.length, "bfloat16")
    element = Element(
        "memory", name.removeprefix("memory/"), encode_cells(cells), requires=(own.one("codec").version,)
    )
    refs = place.store.publish([element], message=f"another version of {name}")
    swapped = [ref for ref in (row.ref for row in own.rows()) if ref.name != name] + refs
    pinned = place.store.pin(swapped, message=f"with another version of {name}")
    asked.setting = replace(asked.setting, snapshot=pinned)
    after = asked.answer(asked.plan[Condition.RETRIEVED])
    pairs = enumerate(zip(before, after, strict=True))
    changed = {n for n, (was, now) in pairs if abs(was.nll - now.nll) > _SAME}
    mine = set(users[name])
    return {
        "replaced_changed": len(changed & mine) / len(mine),
        "replaced_others": len(changed - mine),
    }
