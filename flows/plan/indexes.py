"""The indexes of a set of memories as far as the store holds them, and why they would be made."""

from collections.abc import Mapping
from dataclasses import dataclass

from flows.plan.steps import Known
from store import Ref
from tasks.retrieval import IndexRefs, charts_recipe, dense_recipe, readout_recipe, reranker_recipe
from tasks.retrieval.params import RetrievalParams

INDEX = "main"
NAMES = tuple(f"index/{INDEX}/{part}" for part in ("readout", "dense", "charts"))
RERANKER = f"reranker/{INDEX}"


@dataclass(frozen=True)
class FoundIndexes:
    """Readout, charts, dense keys and the reranker that are there, or the reason why some would be made."""

    refs: tuple[Ref, ...] = ()
    reason: str = ""


def find_indexes(
    known: Known,
    params: RetrievalParams,
    memories: Mapping[str, str],
    *,
    codec: Ref,
    tokenizer: Ref,
    reranker: Ref | None = None,
) -> FoundIndexes:
    """Look up the indexes of memories (versions by full name); a `reranker` is taken as it is."""
    inputs = [codec.version, *(memories[name] for name in sorted(memories))]
    readout = known.find(readout_recipe(INDEX, params.readout_tile, inputs))
    dense = known.find(dense_recipe(INDEX, inputs))
    if readout is None or dense is None:
        before = known.latest(NAMES[0])
        return FoundIndexes(
            reason="never built" if before is None else "other memories, codec or readout_tile than before"
        )
    row = known.get_all([tokenizer.version]).get(tokenizer.version)
    size = row.facts.get("vocab_size") if row is not None else None
    if not isinstance(size, int):
        return FoundIndexes(reason=f"{tokenizer} does not say how many tokens it has")
    charts = known.find(charts_recipe(params, readout.ref, size, INDEX))
    if charts is None:
        return FoundIndexes(reason="parameters of retrieval.charts changed")
    index = IndexRefs(readout.ref, charts.ref, dense.ref)
    if reranker is None:
        trained = known.find(reranker_recipe(params, index, codec, INDEX))
        if trained is None:
            reason = "parameters of retrieval.reranker or retrieval.search changed, or its index did"
            return FoundIndexes(reason=reason)
        reranker = trained.ref
    return FoundIndexes((*index.all, reranker))
