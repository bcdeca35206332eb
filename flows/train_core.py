"""Flow `train-core`: the residual-assembly core, on language and on train-split memories of a snapshot."""

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from store import Ref
from tasks.assembly.params import AssemblyParams


def _train(settings: Settings, params: AssemblyParams, snapshot: str, corpus: list[str]) -> str:
    from tasks.assembly.step import train_core as train

    prepare_threads(settings)
    store = open_store(settings)
    with watch.progress("train core", "updates") as progress:
        ref = train(
            store,
            params,
            snapshot=store.snapshot(snapshot),
            corpus=[Ref.parse(text) for text in corpus],
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return str(ref)


train_task = bind(_train, name="train core")


def _flow(params: Params, settings: Settings, corpus: Pin, memory: Pin) -> Pin:
    """Train the core against the pinned memories; documents of the test split are not read."""
    assert memory.snapshot is not None, "the memory stage pins a snapshot"
    ref = train_task(settings, params.assembly, memory.snapshot, list(corpus.refs))
    return Pin(stage="core", refs=(ref,))


train_core = flow(_flow, name="train-core")
