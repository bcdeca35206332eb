"""Flow `train-codec`: learn the shared codec on the even shards of a corpus."""

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.workers.gpu import computing_device
from store import Ref
from tasks.codec.params import CodecParams


def _train(settings: Settings, params: CodecParams, corpus: list[str], tokenizer: str) -> str:
    from tasks.codec.step import train_codec as train

    prepare_threads(settings)
    with watch.progress("train codec", "updates") as progress, computing_device(settings) as device:
        ref = train(
            open_store(settings),
            params,
            corpus=[Ref.parse(text) for text in corpus],
            tokenizer=Ref.parse(tokenizer),
            progress=progress,
            device=device,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return str(ref)


_task = bind(_train, name="train codec")


def train_codec_task(settings: Settings, params: CodecParams, corpus: list[str], tokenizer: str) -> str:
    """Run the training as a task of the flow that calls this."""
    return _task(settings, params, corpus, tokenizer)


def _flow(params: Params, settings: Settings, corpus: Pin, tokenizer: Pin) -> Pin:
    """Train the codec, or find the one that the store already holds for these inputs."""
    ref = train_codec_task(settings, params.codec, list(corpus.refs), str(tokenizer.one("tokenizer")))
    return Pin(stage="codec", refs=(ref,))


train_codec = flow(_flow, name="train-codec")
