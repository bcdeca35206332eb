"""An element in two versions: that of a snapshot, and one that is made or named and pinned in its place."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store import Element, Recipe, Ref, Row, Snapshot, Store
from store.errors import ElementNotFound
from store.selection import replace as with_others
from tasks.errors import TooLittleText
from tasks.evaluation import AttachmentTask, EvaluationSetting
from tasks.memory import MemoryParams, decode_cells, encode_cells, measure, work_documents
from tasks.replacement.dependents import Change
from tasks.replacement.edit import edit, editable, most_asked
from tasks.replacement.params import ReplacementParams, split_version
from tasks.retrieval import RetrievalParams, index_memories

MEMORY_RECIPE = "replacement.memory/1"


@dataclass(frozen=True)
class Swap:
    """An element's two versions: rows, payloads' differing blocks, and the new text where one was made."""

    old: Row
    new: Row
    ids: NDArray[np.uint16] | None
    block_tokens: int
    different_B: NDArray[np.bool_]

    @classmethod
    def make(
        cls,
        store: Store,
        setting: EvaluationSetting,
        tasks: Sequence[AttachmentTask],
        params: ReplacementParams,
        memory: MemoryParams,
    ) -> "Swap":
        """Find the element and its other version, or make that.

        Raises `ElementNotFound` for one that the snapshot or the store does not hold, `TooLittleText` where
        no task of it has an answer that can be edited, or no other document says something else.
        """
        old, new = find_versions(store, setting.snapshot, params.element or most_asked(tasks))
        name, ids = old.name, None
        if new is None:
            own = [task for task in tasks if task.element == name]
            if not editable(own):
                raise TooLittleText(
                    f"no task asks {name} for something that no other task shows; name another element"
                )
            others = {other: text for other, text in setting.test_texts().items() if other != name}
            ids = edit(setting.texts[name], own, others, np.random.default_rng([params.seed, 0]))
            new = _published(store, _publish(store, setting, old, ids, memory))
        architecture = setting.codec.architecture
        cells = [decode_cells(store.read(row), architecture).dequantise().numpy() for row in (old, new)]
        blocks = max(map(len, cells))
        padded = [np.pad(one, ((0, blocks - len(one)), (0, 0)), constant_values=np.nan) for one in cells]
        different_B = (padded[0] != padded[1]).any(1)
        # Where a codec has parents, a block is read with the cells of its whole group.
        group_B = np.arange(blocks) // architecture.group_blocks
        different_B = np.isin(group_B, group_B[different_B])
        return cls(old, new, ids, architecture.block_tokens, different_B)

    @property
    def blocks(self) -> int:
        """Blocks of the longer version."""
        return len(self.different_B)

    @property
    def different_blocks(self) -> int:
        """Blocks whose stored cells, or those that they are read with, differ."""
        return int(self.different_B.sum())

    def change(self, setting: EvaluationSetting) -> Change:
        """Which tokens read otherwise now."""
        text = setting.texts[self.old.name]
        text_N = np.zeros(len(text), bool) if self.ids is None else self.ids != text
        return Change(self.old.name, np.repeat(self.different_B, self.block_tokens), text_N)


def find_versions(store: Store, snapshot: Snapshot, element: str) -> tuple[Row, Row | None]:
    """A memory of a snapshot and, where `element` names one, the version of the store to put in its place.

    Raises `ElementNotFound` for one that the snapshot or the store does not hold.
    """
    name, version = split_version(element)
    return snapshot.get(name), None if version is None else _published(store, Ref(name, version))


def _published(store: Store, ref: Ref) -> Row:
    row = store.catalog().get(ref.version)
    if row is None or row.ref != ref:
        raise ElementNotFound(f"{store.url} holds no {ref}; `cellar log` tells what was published")
    return row


def _publish(
    store: Store, setting: EvaluationSetting, old: Row, ids: NDArray[np.uint16], memory: MemoryParams
) -> Ref:
    """Publish the memory of an edited document under the name of the one it replaces."""
    codec, [codec_ref] = setting.codec, [setting.snapshot.one("codec").ref]
    [worked] = work_documents(codec, [ids], memory)
    payload = encode_cells(worked.memory)
    stored = [decode_cells(payload, codec.architecture)]
    [figures] = measure(codec, [ids], stored, [int(worked.steps_N.sum())], memory)
    digest = hashlib.sha256(ids.astype("<u2").tobytes()).hexdigest()
    made = Recipe(MEMORY_RECIPE, {"name": old.name, **memory.identity()}, (old.version, digest))
    element = Element(
        "memory",
        old.name.partition("/")[2],
        payload,
        requires=(codec_ref.version,),
        provenance={
            "recipe": made.fingerprint,
            "document": digest,
            "tokens": figures.tokens,
            "codec": str(codec_ref),
            "replaces": str(old.ref),
            "params": memory.identity(),
        },
        facts={**figures.to_dict(), "source": f"edited for a replacement of {old.ref}"},
    )
    return store.publish([element], message=f"Publish another version of {old.name}")[0]


def pin_swapped(
    store: Store, setting: EvaluationSetting, swap: Swap, retrieval: RetrievalParams
) -> tuple[Snapshot, float]:
    """The snapshot with the new version and an index over it, and the seconds that the index took."""
    rows = setting.snapshot.rows()
    kept = list(with_others([row for row in rows if row.kind != "index"], [swap.new]).rows)
    readout = next(row for row in rows if row.kind == "index" and row.name.endswith("/readout"))
    began = time.perf_counter()
    index = index_memories(
        store,
        retrieval,
        memories=[row for row in kept if row.kind == "memory"],
        codec=setting.snapshot.one("codec"),
        name=readout.name.split("/")[1],
        earlier=readout,
    )
    seconds = time.perf_counter() - began
    refs = [*(row.ref for row in kept), *index.all]
    message = f"Replace {swap.old.name} in {setting.snapshot.id[:12]}"
    return store.pin(refs, message=message), seconds
