"""Adding and removing single memories of an index that may lie in mapped files, without making it again."""

from collections.abc import Mapping

import numpy as np

from store.errors import ElementNotFound
from tasks.retrieval.charts import Charts
from tasks.retrieval.dense import DenseIndex
from tasks.retrieval.evidence import Sources
from tasks.retrieval.index import Index
from tasks.retrieval.layers import LayeredDense, LayeredReadout, layer_charts
from tasks.retrieval.readout import DecodedMemory, Readout


class Overlay:
    """Changes of an index, searched with it.

    The charts of what was added are made again with every change, so a change costs what all changes hold,
    not what the index holds; `compacted` makes one index of both. Rarity (idf) follows every change; until
    compaction long elements are damped among those of their layer, the centre of dense keys stays that of the
    index, and what was removed still counts in how often a run of tokens was found.
    """

    def __init__(self, index: Index) -> None:
        if not len(index.readout):
            raise ValueError("an empty index has nothing to lay changes over; build one from memories")
        self._base = index
        self._added: dict[str, DecodedMemory] = {}
        self._kept_E = np.ones(len(index.readout), dtype=bool)
        bag = index.sources.charts.bag
        # idf is log((E + 1) / (df + 1)), which tells how many elements hold a token, common ones too.
        self._holding_V = np.round((len(index.readout) + 1) / np.exp(bag.idf_V.astype(np.float64)) - 1)
        self.index = index
        """The index as it is with all changes."""

    def __len__(self) -> int:
        """Memories added and removed since the index was made."""
        return len(self._added) + int((~self._kept_E).sum())

    def add(self, memory: DecodedMemory) -> None:
        """Take in a memory, in place of one of the same name."""
        if memory.name in self._added or self._row(memory.name) is not None:
            self._take_out(memory.name)
        self._added[memory.name] = memory
        self._holding_V[np.unique(memory.tokens_L)] += 1
        self.index = self._laid_over()

    def remove(self, name: str) -> None:
        """Leave out a memory; raises ElementNotFound where there is none of that name."""
        self._take_out(name)
        self.index = self._laid_over()

    def compacted(self) -> Index:
        """One index of what there is now, without layers.

        Readout and charts are, byte for byte, those made from these memories at once, whatever was added and
        removed in between. Dense keys keep the centre of the index: `index_memories` makes them anew.
        """
        readout = self.index.readout
        rows = np.flatnonzero(self._kept()).tolist()
        rows.sort(key=lambda row: readout.names[row])
        dense = self.index.sources.dense
        none_C = np.zeros(0, dtype=np.float32)
        made = Readout.of(
            DecodedMemory(readout.names[row], readout.versions[row], readout.tokens(row), none_C)
            for row in rows
        )
        params, vocab_size = self._base.sources.charts.params, self._base.vocab_size
        sources = Sources(
            made,
            Charts.of(made.tokens_N, made.start_E1, vocab_size, params),
            None if dense is None else DenseIndex(dense.keys(np.array(rows)), dense.centre_C),
            self._base.sources.encoder,
        )
        return Index(sources, self._base.reranker, self._base.params)

    def _row(self, name: str) -> int | None:
        """The row of the index that holds this name and was not removed."""
        row = self._base.readout.row_of.get(name)
        return row if row is not None and self._kept_E[row] else None

    def _kept(self) -> np.ndarray:
        return np.concatenate([self._kept_E, np.ones(len(self._added), dtype=bool)])

    def _take_out(self, name: str) -> None:
        row = self._row(name)
        if name in self._added:
            tokens_L = self._added.pop(name).tokens_L
        elif row is not None:
            tokens_L = self._base.readout.tokens(row)
            self._kept_E = self._kept_E.copy()  # searches with the index before this change may be running
            self._kept_E[row] = False
        else:
            raise ElementNotFound(f"the index holds no {name}; nothing was removed")
        self._holding_V[np.unique(tokens_L)] -= 1

    def _laid_over(self) -> Index:
        base, added = self._base, Readout.of(self._added.values())
        below = base.readout
        readout = LayeredReadout(
            names=below.names + added.names,
            versions=below.versions + added.versions,
            checksum_ED=np.concatenate([below.checksum_ED, added.checksum_ED]),
            start_E1=np.concatenate([below.start_E1, below.start_E1[-1] + added.start_E1[1:]]),
            tokens_N=below.tokens_N,
            added_N=added.tokens_N,
            kept_E=self._kept(),
        )
        charts = base.sources.charts
        above = Charts.of(added.tokens_N, added.start_E1, base.vocab_size, charts.params)
        elements = int(readout.kept_E.sum())
        idf_V = np.log((elements + 1) / (self._holding_V + 1)).astype(np.float32)
        sources = Sources(
            readout,
            layer_charts(charts, above, readout, idf_V),
            self._dense(base.sources.dense, added.names, self._added, readout.kept_E),
            base.sources.encoder,
        )
        return Index(sources, base.reranker, base.params)

    @staticmethod
    def _dense(
        base: DenseIndex | None,
        names: tuple[str, ...],
        memories: Mapping[str, DecodedMemory],
        kept_E: np.ndarray,
    ) -> DenseIndex | None:
        if base is None:
            return None
        width = len(base.centre_C)
        key_AC = np.stack([np.zeros(width, dtype=np.float32), *(memories[name].key_C for name in names)])[1:]
        added = DenseIndex(base.queries(key_AC), base.centre_C)
        return LayeredDense(base.key_EC, base.centre_C, base, added, kept_E)
