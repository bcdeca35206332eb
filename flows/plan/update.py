"""The plan of an update: what changed at the source of a head, and what its next snapshot would take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import counted
from flows.params import Params
from flows.plan.chain import plan_chain
from flows.plan.estimates import Estimates
from flows.plan.indexes import NAMES, RERANKER, find_indexes
from flows.plan.steps import Known, Step, until
from flows.settings import Settings
from flows.updating.changes import changes
from flows.updating.head_state import HeadState
from flows.updating.scope import Scope
from store import Ref, Store
from tasks.corpus import CorpusPreview, preview
from tasks.memory import memory_recipe, rejection_recipe
from tasks.memory.params import MemoryParams
from tasks.progress import Progress, silent

_SHOWN = 3


@dataclass(frozen=True)
class _Documents:
    """The worker documents of a source by what is known of them, by the full names of their memories."""

    built: Mapping[str, str]
    """Versions of memories that the store has."""
    rejected: frozenset[str]
    new: frozenset[str]


def plan_update(
    store: Store | None,
    params: Params,
    settings: Settings,
    head: str,
    scope: Scope,
    progress: Progress = silent,
) -> list[Step]:
    """What bringing a head up to date would do; a head that is new starts with the chain.

    Raises `UsageError` and `BadCorpus` where the update would.
    """
    base = HeadState(head) if store is None else HeadState.read(store, head)
    base.check_source(params)
    scope.check(base, params.corpus.name)
    if store is None or base.snapshot is None:
        return until(plan_chain(store, params, settings, progress, scope=scope), "snapshot")
    known = Known(store)
    estimates = Estimates(known, settings.work_dir)
    sources = [preview(store, corpus, progress) for corpus in scope.corpora]
    tokenizer, codec = base.frozen["tokenizer"], base.frozen["codec"]
    documents = _documents(known, params.memory, sources, scope, tokenizer, codec)
    steps = [_source(estimates, source) for source in sources]
    memory = _memory(estimates, base, scope, documents)
    steps.append(memory)
    staying = {name: version for name, version in base.memories.items() if not scope.decides(name)}
    after = {**staying, **documents.built}
    indexes = _indexes(known, estimates, params, base, None if memory.runs else after)
    steps.append(indexes)
    if indexes.runs or after != base.memories or set(indexes.refs) != _support(base):
        reason = f"head {head} moves on from {base.snapshot.id[:12]}"
        steps.append(Step("snapshot", "to run", reasons=(reason,), seconds=estimates.seconds("snapshot")))
    else:
        steps.append(Step("snapshot", "done", refs=(base.snapshot.id,)))
    return steps


def _indexes(
    known: Known, estimates: Estimates, params: Params, base: HeadState, memories: Mapping[str, str] | None
) -> Step:
    """The indexes of the next set of memories, None where some are to be built; the reranker is frozen."""
    made = frozenset({*NAMES, *(() if "reranker" in base.frozen else (RERANKER,))})
    estimate: dict[str, Any] = {
        "seconds": estimates.seconds("index-update", "indexes"),
        "bytes": estimates.bytes(*sorted(made)),
    }
    reason = f"the memories of head {base.head} change"
    if memories is not None:
        frozen = base.frozen
        found = find_indexes(
            known,
            params.retrieval,
            memories,
            codec=frozen["codec"],
            tokenizer=frozen["tokenizer"],
            reranker=frozen.get("reranker"),
        )
        if not found.reason:
            return Step("indexes", "done", refs=tuple(map(str, found.refs)))
        reason = found.reason if memories == base.memories else reason
    return Step("indexes", "to run", reasons=(reason,), **estimate)


def _support(base: HeadState) -> set[str]:
    """The indexes and the reranker that a head holds."""
    return {*base.indexes.values(), *(str(ref) for kind, ref in base.frozen.items() if kind == "reranker")}


def _documents(
    known: Known,
    params: MemoryParams,
    sources: Sequence[CorpusPreview],
    scope: Scope,
    tokenizer: Ref,
    codec: Ref,
) -> _Documents:
    recipes = {
        memory_recipe(params, name, digest, tokenizer, codec).fingerprint: f"memory/{name}"
        for source in sources
        for shard, documents in source.documents.items()
        if scope.takes(shard)
        for name, digest in documents
    }
    built = {recipes[one]: row.version for one, row in known.find_many(recipes).items()}
    tried = {rejection_recipe(one): name for one, name in recipes.items() if name not in built}
    rejected = frozenset(tried[one] for one in known.find_many(tried))
    return _Documents(built, rejected, frozenset(recipes.values()) - built.keys() - rejected)


def _source(estimates: Estimates, source: CorpusPreview) -> Step:
    """Whether the source is ingested as it is now."""
    if source.report is not None:
        return Step("corpus", "done", refs=(str(source.report),))
    seconds = estimates.seconds("corpus")
    return Step("corpus", "to run", reasons=("its source changed",), seconds=seconds, bytes=source.bytes)


def _memory(estimates: Estimates, base: HeadState, scope: Scope, documents: _Documents) -> Step:
    """Which documents are added, replaced and retired, and how many of them are to be built."""
    mine = {name: version for name, version in base.memories.items() if scope.decides(name)}
    change = changes(mine, {**documents.built, **dict.fromkeys(documents.new, "")})
    reasons = [
        f"{counted(len(names), 'document')} {what}: {_first(names)}"
        for what, names in change.items()
        if names and what != "kept"
    ]
    to_do, done = len(documents.new), len(documents.built) + len(documents.rejected)
    mean = estimates.memory_bytes()
    if not to_do:
        refs = tuple(f"{name}@{version}" for name, version in sorted(documents.built.items()))
        return Step("memory", "done", refs=refs, reasons=tuple(reasons), done=done, to_do=0)
    return Step(
        "memory",
        "partly done" if done else "to run",
        reasons=tuple(reasons),
        done=done,
        to_do=to_do,
        seconds=estimates.memory_seconds(to_do, max(len(base.memories), 1)),
        bytes=None if mean is None else round(mean * to_do),
    )


def _first(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
