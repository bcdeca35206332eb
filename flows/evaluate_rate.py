"""Flow `evaluate-rate`: what documents lose in cells of several widths and number formats."""

from typing import Any

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.workers.gpu import computing_device
from store import Ref


def _evaluate(settings: Settings, params: Params, corpus: list[str], tokenizer: str) -> dict[str, Any]:
    from tasks.rates import evaluate_rate as evaluate

    prepare_threads(settings)
    with (
        watch.progress("evaluate rate", "updates and documents") as progress,
        computing_device(settings) as device,
    ):
        result = evaluate(
            open_store(settings),
            params.rate,
            params.codec,
            params.memory,
            corpus=[Ref.parse(text) for text in corpus],
            tokenizer=Ref.parse(tokenizer),
            progress=progress,
            device=device,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


evaluate_task = bind(_evaluate, name="evaluate rate")


def _flow(params: Params, settings: Settings, corpus: Pin, tokenizer: Pin) -> dict[str, Any]:
    """Train, remember and measure every point, or find it; returns the `evaluation` and its `samples`."""
    shards = [str(ref) for ref in corpus.references("corpus")]
    return evaluate_task(settings, params, shards, str(tokenizer.one("tokenizer")))


evaluate_rate = flow(_flow, name="evaluate-rate")
