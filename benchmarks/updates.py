"""The parts of `benchmarks.incremental`, each run in a process of its own: prepare a codec, update a head."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHARDS = 16
_FROZEN = ("tokenizer", "codec", "reranker")


def documents(count: int, *, source: str | None) -> list[dict[str, str]]:
    """`count` texts with ids: lines of a JSONL file, or the documentation that is installed here."""
    found = _lines(Path(source)) if source else installed()
    some = [document for _, document in zip(range(count), found, strict=False)]
    if len(some) < count:
        raise ValueError(f"there are {len(some)} documents here, not {count}; give fewer with --n")
    return some


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            record = json.loads(line)
            yield {"id": str(record.get("id", f"line-{number:06d}")), "text": record["text"]}


def installed() -> Iterator[dict[str, str]]:
    """The documentation that is installed here, as texts with ids."""
    from tasks.corpus.document import Document
    from tasks.corpus.params import CorpusParams
    from tasks.corpus.sources import open_source

    seen: set[str] = set()
    for item in open_source(CorpusParams(min_characters=500)).items():
        if isinstance(item, Document) and not {item.name, item.digest} & seen:
            seen |= {item.name, item.digest}
            yield {"id": item.name, "text": item.text}


def update(
    *, url: str, source: str, work: str, frozen_from: str | None = None, steps: int = 300
) -> dict[str, Any]:
    """One update of the head `docs`; with `frozen_from`, of a new store with the frozen parts of that one.

    `ready` is the moment at which everything is loaded and the Prefect API answers: start-up ends there.
    """
    from flows.params import Params
    from flows.serving.api import prefect_api
    from flows.settings import Settings
    from flows.update_memories import update_memories
    from store import Store

    store = Store.open_or_create(url)
    if frozen_from is not None:
        freeze(Store.open(frozen_from), store)
    corpus = {"reader": "jsonl", "path": source, "shards": SHARDS}
    params = Params.model_validate({"corpus": corpus, "codec": {"steps": steps}})
    settings = Settings(store=url, work_dir=Path(work), quiet=True)
    with prefect_api(Path(work) / "prefect"):
        ready = time.time()
        made: dict[str, Any] = update_memories(params, settings, "docs")
        seconds = time.time() - ready
    return {**made, "ready": ready, "work_seconds": seconds}


def freeze(source: Any, destination: Any) -> None:
    """Let the head of a new store begin with tokenizer, codec and reranker of another, and no memory."""
    from store.transfer import copy_snapshot

    snapshot = source.snapshot("head:docs")
    refs = [snapshot.one(kind).ref for kind in _FROZEN]
    pinned = source.pin(refs, message="Pin what is frozen")
    copy_snapshot(source, pinned, destination)
    destination.move_head("docs", pinned.id, expect=None)


def memory_changes(*, url: str, before: str, after: str) -> dict[str, list[str]]:
    """Documents whose memories differ between two snapshots, as `snapshot diff` finds them."""
    from store import Store
    from store.diff import compare, entries_of

    store = Store.open(url)
    found: dict[str, list[str]] = {"added": [], "removed": [], "replaced": []}
    for change in compare(entries_of(store.snapshot(before)), entries_of(store.snapshot(after))):
        if change.name.startswith("memory/"):
            found[change.what].append(change.name.removeprefix("memory/"))
    return found
