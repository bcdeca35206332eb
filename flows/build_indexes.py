"""Flow `build-indexes`: charts, dense keys, readout and reranker over the memories of a snapshot."""

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from store import Ref
from tasks.retrieval.params import RetrievalParams


def _build(settings: Settings, params: RetrievalParams, snapshot: str) -> list[str]:
    from tasks.retrieval.step import build_indexes as build

    prepare_threads(settings)
    store = open_store(settings)
    with watch.progress("build indexes", "memories") as progress:
        refs = build(store, params, snapshot=store.snapshot(snapshot), progress=progress)
    return [str(refs.readout), str(refs.charts), str(refs.dense)]


def _train(settings: Settings, params: RetrievalParams, index: list[str], codec: str) -> str:
    from tasks.retrieval import IndexRefs
    from tasks.retrieval.step import train_reranker as train

    prepare_threads(settings)
    refs = IndexRefs(*(Ref.parse(text) for text in index))
    with watch.progress("train reranker", "updates") as progress:
        ref = train(open_store(settings), params, index=refs, codec=Ref.parse(codec), progress=progress)
    return str(ref)


_build_task = bind(_build, name="build indexes")
train_reranker_task = bind(_train, name="train reranker")


def _flow(params: Params, settings: Settings, memory: Pin, codec: Pin) -> Pin:
    """Build the indexes of the pinned memories and fit their reranker on train-split elements."""
    assert memory.snapshot is not None, "the memory stage pins a snapshot"
    index = _build_task(settings, params.retrieval, memory.snapshot)
    reranker = train_reranker_task(settings, params.retrieval, index, str(codec.one("codec")))
    return Pin(stage="indexes", refs=(*index, reranker))


build_indexes = flow(_flow, name="build-indexes")
