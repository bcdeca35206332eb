"""Flow `update-memories`: bring the snapshot of a head up to date with its source.

Tokenizer, codec and reranker are those of the head's snapshot. New and changed documents are built, vanished
ones are left out, and the head moves to the new set by compare-and-swap. A head that is new starts with all
of the chain up to the snapshot.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from flows import watch
from flows.build_indexes import train_reranker_task
from flows.build_memory import (
    build_name,
    commit_shards,
    nothing_published,
    rejected_documents,
    shard_results,
)
from flows.engine import bind, flow
from flows.errors import UsageError
from flows.ingest_corpus import train_tokenizer_task
from flows.notices import degraded
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.provenance.corpora import corpus_name, made_from
from flows.settings import Settings
from flows.timing import Work, timed
from flows.train_codec import train_codec_task
from flows.updating.changes import changes
from flows.updating.claimed import claimed
from flows.updating.head_state import HeadState
from flows.updating.partitions import moment
from flows.updating.scope import Scope
from flows.updating.skipped import skipped
from store import Ref
from store.positions import LONGEST_WHY, UPDATE
from store.snapshot import snapshot_id
from tasks.corpus import open_report
from tasks.corpus.params import CorpusParams
from tasks.errors import BadCorpus
from tasks.memory import ShardResult, summarise
from tasks.memory.params import MemoryParams
from tasks.retrieval.params import RetrievalParams

_INDEX = "main"


def _ingest(settings: Settings, params: CorpusParams) -> str:
    from tasks.corpus.step import ingest

    with watch.progress(f"read corpus {params.corpus}", "documents") as progress:
        return str(ingest(open_store(settings), params, progress).report_ref)


def _commit(
    settings: Settings, params: MemoryParams, build: str, results: list[dict[str, Any]], support: list[str]
) -> None:
    commit_shards(
        open_store(settings), params, build, [ShardResult.from_dict(values) for values in results], support
    )


def _index(
    settings: Settings, params: RetrievalParams, memories: list[str], codec: str, earlier: str | None
) -> list[str]:
    from tasks.retrieval.step import index_memories

    prepare_threads(settings)
    store = open_store(settings)
    wanted = [Ref.parse(text).version for text in (*memories, codec, *([earlier] if earlier else []))]
    rows = store.catalog().get_all(wanted)
    codec_row = rows.pop(Ref.parse(codec).version)
    earlier_row = rows.pop(Ref.parse(earlier).version, None) if earlier else None
    with watch.progress("build indexes", "memories") as progress:
        refs = index_memories(
            store,
            params,
            memories=list(rows.values()),
            codec=codec_row,
            name=_INDEX,
            earlier=earlier_row,
            progress=progress,
        )
    return [str(refs.readout), str(refs.charts), str(refs.dense)]


def _pin(
    settings: Settings, head: str, refs: list[str], expect: str | None, message: str, run: dict[str, Any]
) -> str:
    store = open_store(settings)
    pinned = store.pin([Ref.parse(text) for text in refs], message=message, run=run)
    store.move_head(head, pinned.id, expect=expect, action=UPDATE, why=message[:LONGEST_WHY])
    return pinned.id


_ingest_task = bind(_ingest, name="ingest corpus")
_commit_task = bind(_commit, name="commit memories")
_index_task = bind(_index, name="update indexes")
_pin_task = bind(_pin, name="pin and move head")


def _build(
    params: MemoryParams, settings: Settings, builds: dict[str, list[str]], support: list[str]
) -> list[dict[str, Any]]:
    """Build the memories of some shards and commit those of each build."""
    results = shard_results(params, settings, builds, support)
    by_shard = {values["shard"]: values for values in results}
    for build, shards in builds.items():
        _commit_task(settings, params, build, [by_shard[shard] for shard in shards], support)
    return results


class _Update:
    """One run: the base, what it works on, and what comes of it."""

    def __init__(self, params: Params, settings: Settings, base: HeadState, scope: Scope) -> None:
        self._params = params
        self._settings = settings
        self._store = open_store(settings)
        self._base = base
        self._scope = scope

    def corpora(self, *, retrain: bool) -> dict[str, Ref]:
        """Reports of the corpora that memories are built from, by name.

        A new codec needs all memories anew, so those of the partitions that stay as well.
        """
        reports = [self._ingested(corpus) for corpus in self._scope.corpora]
        ours = {corpus_name(report): report for report in reports}
        if retrain and not self._scope.whole and not self._base.corpora:
            self._check_nothing_stays()
        return {**self._staying(), **ours} if retrain else ours

    def _ingested(self, corpus: CorpusParams) -> Ref:
        with self._timed("corpus") as work:
            report = _ingest_task(self._settings, corpus)
            work.outcome = [report]
        return Ref.parse(report)

    def _timed(self, stage: str) -> AbstractContextManager[Work]:
        return timed(self._settings.work_dir, self._store, stage)

    def _check_nothing_stays(self) -> None:
        """Refuse to leave out memories of partitions that nobody knows the documents of."""
        staying = [name for name in self._base.memories if not self._scope.decides(name)]
        if staying:
            raise UsageError(
                f"head {self._base.head} does not say which corpora it was made from, so a new codec would "
                f"lose {len(staying)} memories, {staying[0]} for one; name all partitions"
            )

    def recorded(self, corpora: Mapping[str, Ref]) -> dict[str, Any]:
        """What the new pin records of its corpora."""
        return made_from({**self._staying(), **corpora}.values())

    def _staying(self) -> dict[str, Ref]:
        name = self._params.corpus.name
        gone = {f"{name}.{partition}" for partition in self._scope.dropped}
        return {corpus: ref for corpus, ref in self._base.corpora.items() if corpus not in gone}

    def support(self, shards: Sequence[str], *, retrain: bool) -> tuple[list[str], bool]:
        """Codec and tokenizer, and whether they were trained now."""
        frozen = self._base.frozen
        if frozen and not retrain:
            return [str(frozen["codec"]), str(frozen["tokenizer"])], False
        made = train_tokenizer_task(self._settings, self._params.tokenizer, list(shards))
        tokenizer = str(Pin.model_validate(made).one("tokenizer"))
        with self._timed("codec") as work:
            codec = train_codec_task(self._settings, self._params.codec, list(shards), tokenizer)
            work.outcome = [codec]
        return [codec, tokenizer], True

    def memories(
        self, shards: Mapping[str, list[str]], support: list[str], *, anew: bool
    ) -> tuple[list[ShardResult], dict[str, str]]:
        """Outcomes of the documents that were looked at, and the version of every memory of the new set."""
        builds = {
            build_name(self._params.memory, Pin(stage="corpus", refs=tuple(refs)), support[1], support[0]): [
                text for text in refs if self._scope.takes(Ref.parse(text))
            ]
            for refs in shards.values()
        }
        with self._timed("memory") as work:
            results = [
                ShardResult.from_dict(values)
                for values in _build(self._params.memory, self._settings, builds, support)
            ]
            work.outcome = [str(ref) for result in results for ref in result.published]
            work.documents = sum(result.worked for result in results)
        staying = {
            name: version
            for name, version in self._base.memories.items()
            if not anew and not self._scope.decides(name)
        }
        present = {ref.name: ref.version for result in results for ref in result.published}
        if not staying and not present:
            raise nothing_published([outcome for result in results for outcome in result.rejected])
        return results, {**staying, **present}

    def indexes(self, memories: Mapping[str, str], support: list[str], *, anew: bool) -> list[str]:
        """The indexes of a set of memories, with the reranker that is frozen or trained now."""
        earlier = None if anew else self._base.indexes.get(f"index/{_INDEX}/readout")
        refs = [f"{name}@{version}" for name, version in sorted(memories.items())]
        retrieval = self._params.retrieval
        reranker = self._base.frozen.get("reranker")
        keeps = reranker is not None and not anew
        with self._timed("index-update" if keeps else "indexes") as work:
            made = _index_task(self._settings, retrieval, refs, support[0], earlier)
            kept = (
                str(reranker) if keeps else train_reranker_task(self._settings, retrieval, made, support[0])
            )
            work.outcome = [*made, kept]
        return list(work.outcome)

    def pin(self, refs: list[str], message: str, record: dict[str, Any]) -> None:
        """Pin the new set and move the head there."""
        with self._timed("snapshot") as work:
            _pin_task(self._settings, self._base.head, refs, self._base.id, message, record)
            work.outcome = refs


def _flow(
    params: Params,
    settings: Settings,
    head: str,
    partitions: list[str] | None = None,
    shards: str | None = None,
    drop_partitions: list[str] | None = None,
    skip_missing: bool = False,
    retrain: bool = False,
    wait_s: float = 0.0,
    at: str | None = None,
) -> dict[str, Any]:
    """Bring a head up to date; see the module. Returns the record that `cellar update --json` prints.

    `partitions` and `drop_partitions` are names, dates and ranges, of which `today` and `yesterday` are days
    at the time `at` (ISO 8601 with its zone; now by default). `shards` are worker shards as in `1,3..9`; what
    other shards and partitions hold stays. `wait_s` is how long to wait for another run on the same head.
    """
    scope = Scope.of(
        params,
        partitions=partitions or (),
        dropped=drop_partitions or (),
        shards=shards,
        skip_missing=skip_missing,
        at=moment(at),
    )
    if retrain and scope.shards:
        raise UsageError("a new codec needs the memories of all shards anew; leave out --shards or --retrain")
    store = open_store(settings)
    with claimed(store, head, wait_s=wait_s) as claim:
        base = HeadState.read(store, head)
        base.check_source(params)
        scope.check(base, params.corpus.name)
        run = _Update(params, settings, base, scope)
        corpora = run.corpora(retrain=retrain)
        if not corpora and base.snapshot is None:
            raise BadCorpus(f"head {head} is new and there is nothing to build; give a partition")
        read = {name: open_report(store, report) for name, report in corpora.items()}
        shard_refs = {name: [str(ref) for ref in corpus.shards] for name, corpus in read.items()}
        support, trained = run.support([ref for refs in shard_refs.values() for ref in refs], retrain=retrain)
        anew = trained or base.snapshot is None
        results, memories = run.memories(shard_refs, support, anew=anew)
        index = run.indexes(memories, support, anew=anew)
        change = changes(base.memories, memories)
        refs = [f"{name}@{version}" for name, version in memories.items()]
        refs += [*support, *index, *map(str, base.others)]
        identity = _identity(refs)
        moved = identity != base.id
        if moved:
            claim.check()
            counts = {what: len(names) for what, names in change.items()}
            message = f"Update {head}: " + ", ".join(f"{count} {what}" for what, count in counts.items())
            record = {**run.recorded(corpora), "update": {"head": head, "previous": base.id, **counts}}
            run.pin(refs, message, record)
    figures = summarise(results)
    worked = sum(result.worked for result in results)
    if moved or worked:  # what a source without changes is still like was told before
        degraded.tell_of_build(settings, identity, figures)
    return {
        "head": head,
        "snapshot": identity,
        "previous": base.id,
        "moved": moved,
        **{what: len(names) for what, names in change.items()},
        "names": {what: names[:SHOWN] for what, names in change.items() if what != "kept"},
        "documents": figures["documents"],
        "worked": worked,
        "rejected": rejected_documents(results),
        "skipped": skipped((corpus.report for corpus in read.values()), SHOWN),
        "missing": list(scope.missing),
        "figures": {name: figures[name] for name in FIGURES},
        "corpora": {name: str(report) for name, report in corpora.items()},
        "notices": [] if trained else base.differing(store, params),
    }


SHOWN = 1000
"""Names of changed and skipped documents that a record lists of each kind; the counts are of all."""

FIGURES = ("token_recall", "span8_exact", "loss", "published", "rejected")


def _identity(refs: Sequence[str]) -> str:
    pairs = sorted((ref.name, ref.version) for ref in map(Ref.parse, refs))
    return snapshot_id(pairs)


update_memories = flow(_flow, name="update-memories")
