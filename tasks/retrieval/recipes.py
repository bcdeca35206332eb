"""How the artifacts of an index are made: what their fingerprints consist of."""

from collections.abc import Sequence
from dataclasses import dataclass

from store import Recipe, Ref
from tasks.retrieval.params import RetrievalParams


@dataclass(frozen=True)
class IndexRefs:
    """The three artifacts of one index, all built from the memories of one snapshot."""

    readout: Ref
    charts: Ref
    dense: Ref

    @property
    def all(self) -> tuple[Ref, Ref, Ref]:
        """What a snapshot has to hold for the index to open, besides memories, codec and reranker."""
        return self.readout, self.charts, self.dense


def readout_recipe(name: str, tile: int, inputs: Sequence[str]) -> Recipe:
    """How a readout is made of the versions of a codec and, by name, of memories."""
    return Recipe("retrieval.readout/2", {"name": name, "tile": tile}, tuple(inputs))


def dense_recipe(name: str, inputs: Sequence[str]) -> Recipe:
    """How dense keys are made of what a readout is made of."""
    return Recipe("retrieval.dense/1", {"name": name}, tuple(inputs))


def charts_recipe(params: RetrievalParams, readout: Ref, vocab_size: int, name: str) -> Recipe:
    """How the charts of a readout are made."""
    settings = {"name": name, "vocab_size": vocab_size, "charts": params.charts.model_dump(mode="json")}
    return Recipe("retrieval.charts/1", settings, (readout.version,))


def reranker_recipe(params: RetrievalParams, index: IndexRefs, codec: Ref, name: str) -> Recipe:
    """How the reranker of an index is fitted."""
    settings = {
        "name": name,
        "reranker": params.reranker.model_dump(mode="json"),
        "search": params.search.model_dump(mode="json"),
    }
    inputs = (codec.version, *(ref.version for ref in index.all))
    return Recipe("retrieval.train_reranker/1", settings, inputs)
