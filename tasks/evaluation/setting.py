"""What an evaluation reads: a core, a snapshot's codec and tokenizer, and the documents of its memories."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store import Ref, Snapshot, Store
from tasks.assembly import (
    CrossReading,
    ResidualCore,
    core_accounts,
    load_core,
    open_reading,
    open_tables,
    worker_documents,
)
from tasks.codec import Codec, load_codec
from tasks.corpus import Tokenizer, element_split, load_tokenizer
from tasks.errors import StaleInputs, TooLittleText
from tasks.evaluation.accounting import AccountRow, Category, account
from tasks.evaluation.conditions import Condition, Plan, Retriever, named_elements, plan_evidence
from tasks.evaluation.evidence import EvidenceReader
from tasks.evaluation.language import language_figures
from tasks.evaluation.params import EvaluationParams
from tasks.evaluation.reading import ReadingPlan, Shelf
from tasks.evaluation.reconstruction import reconstructions
from tasks.evaluation.samples import Sample
from tasks.evaluation.tasks import AttachmentTask, make_tasks
from tasks.retrieval import Index


@dataclass(frozen=True)
class EvaluationSetting:
    """Everything that an evaluation reads, opened once."""

    snapshot: Snapshot
    core: ResidualCore
    codec: Codec
    tokenizer: Tokenizer
    texts: dict[str, NDArray[np.uint16]]
    """Token ids of every memory's document, by the memory's name."""

    @classmethod
    def open(cls, store: Store, snapshot: Snapshot, core: Ref, shards: Sequence[Ref]) -> "EvaluationSetting":
        """Read a core, and what a snapshot holds of the documents in `shards`.

        Raises `StaleInputs` when the core was trained for another codec than the snapshot's.
        """
        _check_core(store, snapshot, core)
        tokenizer = load_tokenizer(store, snapshot.one("tokenizer").ref)
        memories = snapshot.rows("memory")
        return cls(
            snapshot,
            load_core(store.read(core)),
            load_codec(snapshot.read(snapshot.one("codec"))),
            tokenizer,
            worker_documents(store, shards, tokenizer, memories),
        )

    def test_texts(self) -> dict[str, NDArray[np.uint16]]:
        """The documents of the test split, whose memories no training reads."""
        return {name: ids for name, ids in self.texts.items() if element_split(name) == "test"}

    def tasks(self, params: EvaluationParams) -> list[AttachmentTask]:
        """Tasks from the test-split documents; raises `TooLittleText` when none is long enough for one."""
        texts = self.test_texts()
        tasks = make_tasks(texts, params)
        if not tasks:
            raise TooLittleText(
                f"none of the {len(texts)} test-split documents of snapshot {self.snapshot.id[:12]} has "
                f"{params.cue_tokens + params.target_tokens} tokens; build more memories or shorten the tasks"
            )
        return tasks

    def prepare(self, index: Retriever, params: EvaluationParams) -> tuple[list[AttachmentTask], Plan]:
        """Tasks from the test-split documents, and their evidence under every condition.

        Raises `TooLittleText` when no document is long enough for a task.
        """
        tasks = self.tasks(params)
        return tasks, self.plan(tasks, index, params)

    def plan(self, tasks: Sequence[AttachmentTask], index: Retriever, params: EvaluationParams) -> Plan:
        """The evidence of tasks under every condition, as the index finds it."""
        lengths = {name: len(ids) for name, ids in self.test_texts().items()}
        return plan_evidence(tasks, index, lengths, seed=params.seed)

    def reader(self, plan: Plan, params: EvaluationParams) -> EvidenceReader:
        """A reader of exactly the elements that the plan names."""
        rows = [self.snapshot.get(name) for name in named_elements(plan)]
        cells, text = open_tables(self.snapshot, self.codec, rows, self.texts)
        return EvidenceReader(
            cells,
            text,
            {row.name: place for place, row in enumerate(rows)},
            {row.name: row.length for row in rows},
            self.core.identity,
            margin=self.core.architecture.agreement_margin,
            seed=params.seed,
        )

    def open_reading(self, store: Store, core: Ref, reading: Ref) -> CrossReading:
        """A cross-reading; raises `StaleInputs` when it was trained for another core than this one."""
        row = store.catalog().get(reading.version)
        if row is None or core.version not in row.requires:
            raise StaleInputs(
                f"{reading.name}@{reading.version[:12]} was not trained for {core.name}@{core.version[:12]}; "
                "train one for this core"
            )
        return open_reading(store, reading, self.codec)

    def shelf(self, plan: ReadingPlan, reading: CrossReading, params: EvaluationParams) -> Shelf:
        """Exactly the elements that a plan reads in, to be opened one by one."""
        named = {name for rows in plan.values() for names in rows for name in names}
        rows = [self.snapshot.get(name) for name in sorted(named)]
        cells, text = open_tables(self.snapshot, self.codec, rows, self.texts)
        return Shelf(
            reading,
            self.core,
            cells,
            text,
            {row.name: place for place, row in enumerate(rows)},
            {row.name: row.length for row in rows},
            params.seed,
        )

    def standalone(self, params: EvaluationParams) -> dict[str, Any] | None:
        """Perplexity of the core alone on the test-split documents; never mixed with the conditions."""
        texts = self.test_texts()
        figures = language_figures(
            self.core,
            [texts[name] for name in sorted(texts)],
            lambda ids: self.tokenizer.decode(ids),
            window=params.language_window,
            most=params.language_tokens,
        )
        return None if figures is None else asdict(figures)

    def reconstructions(self, index: Index) -> list[dict[str, Any]]:
        """The test-split documents that their memories read worst, for the report."""
        return reconstructions(index.readout, self.test_texts(), lambda ids: self.tokenizer.decode(ids))

    def coarse_values(self) -> int:
        """Numbers of the coarse states that a codec with parents derives from all memories' cells."""
        architecture = self.codec.architecture
        blocks = sum(-(-len(ids) // architecture.block_tokens) for ids in self.texts.values())
        return blocks * len(architecture.parent_spans) * architecture.cell_width

    def storage(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """What the memories take beside their documents' token ids, two bytes each: in all and a query."""
        read = {
            condition: float(np.mean([s.bytes_read for s in samples if s.condition == condition]))
            for condition in (Condition.RETRIEVED, Condition.RAW_TEXT)
        }
        memories = self.snapshot.rows("memory")
        return {
            "memory_bytes": sum(row.length for row in memories),
            "raw_text_bytes": sum(ids.nbytes for ids in self.texts.values()),
            "bytes_per_query": {condition.value: value for condition, value in read.items()},
        }

    def reading_accounts(
        self, store: Store, core: Ref, reading: CrossReading, plan: ReadingPlan, samples: Sequence[Sample]
    ) -> list[dict[str, Any]]:
        """The accounting table with the cross-reading's own rows; active values are the states looked at."""
        learned = sum(parameter.numel() for parameter in reading.parameters())
        table, width = reading.table_VS.numel(), self.codec.architecture.slot_width
        looked = [sum(len(self.texts[name]) for name in names) for names in plan[Condition.RETRIEVED]]
        own = [
            AccountRow(Category.TRAINABLE, "cross-reading", learned, "float32", 4 * learned),
            AccountRow(Category.FROZEN_BUFFERS, "cross-reading's table", table, "float32", 4 * table),
            AccountRow(
                Category.PER_QUERY,
                "states looked at",
                float(np.mean(looked)) * width,
                "float32",
                4 * float(np.mean(looked)) * width,
            ),
        ]
        return [*self.accounting(store, core, samples), *map(asdict, own)]

    def accounting(self, store: Store, core: Ref, samples: Sequence[Sample]) -> list[dict[str, Any]]:
        """The accounting table, its per-query rows over the retrieved condition."""
        shown = [s for s in samples if s.condition == Condition.RETRIEVED]
        used = sum(len(s.evidence.split()) for s in shown if s.weight > 0)
        core_row = store.catalog().get(core.version)
        rows = self.snapshot.rows() + ([core_row] if core_row is not None else [])
        width = self.codec.architecture.slot_width
        table = account(
            core_accounts(self.core),
            self.codec,
            rows,
            elements_per_query=used / len(shown),
            active_values_per_query=float(np.mean([s.attached for s in shown])) * width,
            bytes_per_query=float(np.mean([s.bytes_read for s in shown])),
            coarse_values=self.coarse_values(),
        )
        return [asdict(row) for row in table]


def _check_core(store: Store, snapshot: Snapshot, core: Ref) -> None:
    """Refuse a core that reads the states of another codec than the one that the snapshot's memories need."""
    row = store.catalog().get(core.version)
    codec = snapshot.one("codec")
    if row is None or codec.version not in row.requires:
        raise StaleInputs(
            f"{core.name}@{core.version[:12]} was not trained for {codec.name}@{codec.version[:12]}, which "
            f"snapshot {snapshot.id[:12]} holds; run `cellar core train` again"
        )
