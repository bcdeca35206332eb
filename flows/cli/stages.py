"""Commands that run one stage of the chain as a flow; each reads the pins of the stages before it."""

from cyclopts import App

from flows.cli.launch import Injected, ParamsFile, Set, stage

codec = App(name="codec", help="The shared codec that writes and reads memory cells.")
memory = App(name="memory", help="Memories: documents as cells under a frozen codec.")
index = App(name="index", help="Indexes over what the memories of a snapshot decode to.")
core = App(name="core", help="The residual-assembly core that elements are attached to.")


@codec.command(name="train")
def train_codec(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Train the codec on the even shards of the corpus, or find it published."""
    with stage(session, params, set_, "corpus", "tokenizer") as run:
        from flows.train_codec import train_codec as flow

        run(flow)


@memory.command(name="build")
def build_memory(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Build a memory of every document in the odd shards, commit them at once, and pin them."""
    with stage(session, params, set_, "corpus", "tokenizer", "codec") as run:
        from flows.build_memory import build_memory as flow

        run(flow)


@index.command(name="build")
def build_indexes(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Build charts, dense keys and the reranker of the pinned memories."""
    with stage(session, params, set_, "memory", "codec") as run:
        from flows.build_indexes import build_indexes as flow

        run(flow)


@core.command(name="train")
def train_core(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Train the core on the language stream of the even shards and on train-split memories."""
    with stage(session, params, set_, "corpus", "memory") as run:
        from flows.train_core import train_core as flow

        run(flow)
