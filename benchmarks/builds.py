"""Memory builds to be measured: step functions called directly, through Prefect, on Dask workers.

Each function runs in a child process; see `benchmarks.child`. Every build starts from a copy of one store
that holds the corpus, the tokenizer and the codec.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.settings import Settings

PASSAGE = 500
"""Characters of a document, about: paragraphs are kept whole."""


def prepare(folder: str, documents: int, source: str | None, codec_steps: int, shards: int) -> dict[str, Any]:
    """Make the store of inputs, with so many documents in the odd shards (about), and their pins."""
    from flows.ingest_corpus import ingest_corpus
    from flows.params import load_params
    from flows.pins import write_pin
    from flows.settings import load_settings
    from flows.train_codec import train_codec
    from store import Store

    place = Path(folder)
    lines = Path(source).read_text(encoding="utf-8").splitlines() if source else _installed(place)
    passages = [{"id": f"{n:06d}", "text": text} for n, text in enumerate(_passages(lines))]
    if len(passages) < 2 * documents:
        raise ValueError(
            f"{len(passages)} passages of text are too few for {documents} documents; use --source"
        )
    text = "".join(json.dumps(passage) + "\n" for passage in passages[: 2 * documents])
    (place / "documents.jsonl").write_text(text, encoding="utf-8")
    overrides = ["corpus.reader=jsonl", f"corpus.path={place / 'documents.jsonl'}", f"corpus.shards={shards}"]
    overrides += [f"codec.steps={codec_steps}", "memory.token_recall=0", "memory.loss=99"]
    (place / "params.json").write_text(json.dumps(overrides))
    params = load_params(None, overrides)
    settings = load_settings(store=f"file:{place / 'inputs'}", work_dir=place / "work")
    Store.create(settings.store)
    corpus, tokenizer = ingest_corpus(params, settings)
    for pin in (corpus, tokenizer, train_codec(params, settings, corpus, tokenizer)):
        write_pin(place / "pins", pin)
    return {"documents": corpus.figures["documents"]}


def direct(folder: str) -> dict[str, Any]:
    """The step functions of the flow, one after the other, without Prefect."""
    from flows import build_memory as flow
    from tasks.corpus import is_worker_shard
    from tasks.memory import ShardResult, summarise

    build = _Inputs(folder, "direct")
    support = [str(build.codec.one("codec")), str(build.tokenizer.one("tokenizer"))]
    params = build.params.memory
    began, cpu = time.perf_counter(), time.process_time()
    name = flow.build_name(params, build.corpus, support[1], support[0])
    shards = [str(ref) for ref in build.corpus.references("corpus") if is_worker_shard(ref)]
    results = flow._known(build.settings, params, shards, support)  # none, but a flow would look
    results += [
        flow._build_shard(build.settings, params, name, shard, support[1], support[0]) for shard in shards
    ]
    snapshot = flow._commit(build.settings, params, name, results, support, list(build.corpus.refs))
    figures = summarise(ShardResult.from_dict(values) for values in results)
    spent = time.perf_counter() - began, time.process_time() - cpu
    return build.result(spent, snapshot, figures)


def through_prefect(folder: str, runner: str = "threads", workers: int = 1) -> dict[str, Any]:
    """The flow, with the API that the environment names, used as commands use one on their machine."""
    from flows.build_memory import build_memory
    from flows.serving.api import using

    build = _Inputs(folder, runner, runner=runner, workers=workers)
    with using(os.environ["PREFECT_API_URL"]):
        began, cpu = time.perf_counter(), time.process_time()
        pin = build_memory(build.params, build.settings, build.corpus, build.tokenizer, build.codec)
        spent = time.perf_counter() - began, time.process_time() - cpu
    return build.result(spent, pin.snapshot, pin.figures)


def on_dask(folder: str, workers: int) -> dict[str, Any]:
    """The flow on a Dask cluster of so many workers that runs already and has loaded what it needs."""
    from distributed import Client, LocalCluster

    from flows.build_memory import build_memory

    began = time.perf_counter()
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(_load)
        started = time.perf_counter() - began
        build = _Inputs(folder, f"dask-{workers}", runner="dask", dask_address=cluster.scheduler_address)
        began, cpu = time.perf_counter(), time.process_time()
        pin = build_memory(build.params, build.settings, build.corpus, build.tokenizer, build.codec)
        spent = time.perf_counter() - began, time.process_time() - cpu
    return {**build.result(spent, pin.snapshot, pin.figures), "started_s": started}


class _Inputs:
    """Parameters, settings and pins of one build, and a fresh copy of the store for it."""

    def __init__(self, folder: str, name: str, **settings: Any) -> None:
        import tasks.memory.step  # noqa: F401 - loading is not what is measured
        from flows.params import load_params
        from flows.pins import read_pin
        from flows.settings import load_settings

        place = Path(folder)
        self._copy = place / f"store-{name}"
        shutil.copytree(place / "inputs", self._copy)
        self.params = load_params(None, json.loads((place / "params.json").read_text()))
        self.settings = load_settings(store=f"file:{self._copy}", work_dir=place / "work", **settings)
        self.corpus, self.tokenizer, self.codec = (
            read_pin(place / "pins", stage) for stage in ("corpus", "tokenizer", "codec")
        )

    def result(
        self, spent: tuple[float, float], snapshot: str | None, figures: dict[str, Any]
    ) -> dict[str, Any]:
        """Take the copy away and say what was built in so many seconds, and of processor time here."""
        packs = [path.stat().st_size for path in self._copy.glob("packs/*/*")]
        shutil.rmtree(self._copy)
        counts = {name: figures[name] for name in ("documents", "published", "tokens", "blocks", "steps")}
        seconds, cpu_s = spent
        made = {"seconds": seconds, "cpu_s": cpu_s, "snapshot": snapshot}
        return {**made, **counts, "packs": len(packs), "bytes": sum(packs)}


def _memory_of(results: list[dict[str, Any]]) -> int:
    """Bytes that the flow's own process needs for what workers return, as JSON values and as objects."""
    from tasks.memory import ShardResult

    text = json.dumps(results)
    tracemalloc.start()
    kept = [(values, ShardResult.from_dict(values)) for values in json.loads(text)]
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == len(results)
    return taken


def _load() -> None:
    import tasks.memory.step  # noqa: F401


def _installed(folder: Path) -> list[str]:
    """The documentation that is installed here, one document a line of JSON."""
    from store import Store
    from tasks.corpus import CorpusParams, ingest, load_shard

    store = Store.create(str(folder / "installed"))
    documents = [
        document for ref in ingest(store, CorpusParams()).shards for document in load_shard(store.read(ref))
    ]
    return [json.dumps({"text": document.text}) for document in documents]


def _passages(lines: list[str]) -> Iterator[str]:
    """Whole paragraphs of each document, in order, as many as make a passage."""
    for line in lines:
        passage = ""
        for paragraph in json.loads(line)["text"].split("\n\n"):
            passage += paragraph + "\n\n"
            if len(passage) >= PASSAGE:
                yield passage
                passage = ""


def on_s3(folder: str, url: str, unit_documents: int) -> dict[str, Any]:
    """Build into a bucket by the step functions, counting the requests of shards and commit."""
    from flows import build_memory as flow
    from store import Store
    from store.backend import open_backend
    from store.backend.s3 import S3Backend
    from tasks.corpus import is_worker_shard

    build = _Inputs(folder, f"s3-{unit_documents}")
    there, here = open_backend(url), open_backend(build.settings.store)
    for item in here.list(""):
        there.put(item.key, here.read(item.key))
    counted: Counter[str] = Counter()

    def open_counted(settings: Settings) -> Store:
        store = Store.open(url)
        assert isinstance(store.backend, S3Backend)
        for client in (store.backend._client, store.backend._client_once):
            client.meta.events.register("before-call.s3", lambda model, **_: counted.update([model.name]))
        return store

    flow.open_store = open_counted
    params = build.params.memory.model_copy(update={"unit_documents": unit_documents})
    support = [str(build.codec.one("codec")), str(build.tokenizer.one("tokenizer"))]
    shards = [str(ref) for ref in build.corpus.references("corpus") if is_worker_shard(ref)]
    name = flow.build_name(params, build.corpus, support[1], support[0])
    began = time.process_time()
    results = [
        flow._build_shard(build.settings, params, name, shard, support[1], support[0]) for shard in shards
    ]
    of_shards = dict(counted)
    counted.clear()
    flow._commit(build.settings, params, name, results, support, list(build.corpus.refs))
    cpu_s = time.process_time() - began
    receipts = [receipt for result in results for receipt in result["receipts"]]
    documents = sum(len(result["outcomes"]) for result in results)
    sizes = [item.size for item in there.list("packs/")]
    parts = [item.size for item in there.list("builds/") if "/parts/" in item.key]
    index = [item.size for item in there.list("index/")]
    return {
        "cpu_s": cpu_s,
        "documents": documents,
        "shards": len(shards),
        "units": len(receipts),
        "requests_of_shards": of_shards,
        "requests_of_commit": dict(counted),
        "pack_bytes": sum(receipt["bytes"] for receipt in receipts),
        "largest_pack": max(sizes),
        "part_bytes": sum(parts),
        "index_bytes": sum(index),
        "result_bytes": _memory_of(results),
    }
