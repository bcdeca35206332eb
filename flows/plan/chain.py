"""The plan of the whole chain: what `cellar demo` would find done, and what it would run and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import BaseModel

from flows.params import Params
from flows.pins import Stage
from flows.plan.estimates import Estimates
from flows.plan.indexes import NAMES, RERANKER, find_indexes
from flows.plan.sources import Sources
from flows.plan.steps import Known, Step, changed_params, differences, step_of, waiting
from flows.settings import Settings
from flows.updating.scope import Scope
from store import Recipe, Ref, Row, Store
from store.errors import SnapshotNotFound
from store.snapshot import snapshot_id
from tasks.assembly import core_recipe, select_elements
from tasks.codec import codec_recipe
from tasks.corpus import is_worker_shard
from tasks.corpus.step import tokenizer_recipe
from tasks.evaluation import evaluation_recipe
from tasks.memory import memory_recipe, rejection_recipe
from tasks.progress import Progress, silent

_LOOKED_AT = 100
"""Documents that are asked why they are to be worked on."""
_STAGES: tuple[Stage, ...] = get_args(Stage)


def plan_chain(
    store: Store | None,
    params: Params,
    settings: Settings,
    progress: Progress = silent,
    *,
    scope: Scope | None = None,
) -> list[Step]:
    """The steps of the chain in order, from a whole corpus or the `scope` of an update; the corpus is a step
    for each partition. Without a store all of them would run.

    The source is read where it was not ingested as it is now, so that what its change does not touch is known
    to be done. Raises `BadCorpus` where the chain would.
    """
    corpora, takes = ((params.corpus,), None) if scope is None else (scope.corpora, scope.takes)
    chain = _Chain(Known(store), params, settings, Sources.read(store, corpora, takes, progress))
    steps = [
        *chain.corpora(),
        chain.tokenizer(),
        chain.codec(),
        chain.memory(),
        chain.indexes(),
        chain.snapshot(),
        chain.core(),
        chain.evaluation(),
    ]
    assert {step.name for step in steps} == set(_STAGES), "a plan has the stages of the chain"
    return steps


@dataclass
class _Chain:
    """Step after step, with what the steps before have made; what would be made anew is not in `made`."""

    known: Known
    params: Params
    settings: Settings
    sources: Sources
    made: dict[str, Ref] = field(default_factory=dict)
    memories: list[Row] | None = None
    """By name, None as long as some are to be built."""
    indexes_made: list[Ref] = field(default_factory=list)
    identity: str | None = None
    """Of the snapshot."""

    def __post_init__(self) -> None:
        self.estimates = Estimates(self.known, self.settings.work_dir)

    def corpora(self) -> Iterator[Step]:
        """The shards and the report of each corpus."""
        for name, source in self.sources.by_name.items():
            if source.report is not None:
                yield Step("corpus", "done", refs=(str(source.report), *map(str, source.shards)))
                continue
            row = self.known.latest(f"corpus/{name}/report")
            reasons = differences(self.known, row, source.recipe, source.shards)
            seconds = self.estimates.seconds("corpus")
            yield Step("corpus", "to run", reasons=reasons, seconds=seconds, bytes=source.bytes)

    def tokenizer(self) -> Step:
        """The tokenizer, learned or adopted."""
        params, even = self.params.tokenizer, self._even()
        recipe = tokenizer_recipe(params, even)
        name = f"tokenizer/{params.name}"
        size = self.estimates.bytes(name)
        return self._keep(step_of(self.known, "tokenizer", name, recipe, even, bytes=size))

    def codec(self) -> Step:
        """The codec."""
        params, name = self.params.codec, f"codec/{self.params.codec.name}"
        estimate: dict[str, Any] = {
            "seconds": self.estimates.trained("codec", name, params.steps),
            "bytes": self.estimates.bytes(name),
        }
        if missing := self._missing("tokenizer"):
            return waiting("codec", missing, self._changed(name, params), **estimate)
        tokenizer = self.made["tokenizer"]
        recipe = codec_recipe(params, self.sources.shards, tokenizer)
        inputs = [*self._even(), tokenizer]
        return self._keep(step_of(self.known, "codec", name, recipe, inputs, **estimate))

    def memory(self) -> Step:
        """The memories: how many documents are done, and how many are to be worked on."""
        total = len(self.sources.documents)
        if missing := self._missing("tokenizer", "codec"):
            return waiting("memory", missing, done=0, to_do=total, **self._memory_estimate(total, total))
        tokenizer, codec = self.made["tokenizer"], self.made["codec"]
        recipes = {
            memory_recipe(self.params.memory, name, digest, tokenizer, codec).fingerprint: name
            for name, digest in self.sources.documents
        }
        built = self.known.find_many(recipes)
        rejected = self.known.find_many(rejection_recipe(one) for one in recipes if one not in built)
        to_do = total - len(built) - len(rejected)
        if not to_do and built:
            self.memories = sorted(built.values(), key=lambda row: row.name)
            refs = tuple(str(row.ref) for row in self.memories)
            return Step("memory", "done", refs=refs, done=total, to_do=0)
        left = [name for one, name in recipes.items() if one not in built]
        return Step(
            "memory",
            "partly done" if built else "to run",
            reasons=self._memory_reasons(left),
            done=len(built) + len(rejected),
            to_do=to_do,
            **self._memory_estimate(to_do, total),
        )

    def indexes(self) -> Step:
        """Readout, dense keys, charts and reranker."""
        estimate: dict[str, Any] = {
            "seconds": self.estimates.seconds("indexes"),
            "bytes": self.estimates.bytes(*NAMES, RERANKER),
        }
        if missing := self._missing("codec", "memory"):
            return waiting("indexes", missing, **estimate)
        assert self.memories is not None, "the memories are done"
        codec, tokenizer = self.made["codec"], self.made["tokenizer"]
        memories = {row.name: row.version for row in self.memories}
        found = find_indexes(self.known, self.params.retrieval, memories, codec=codec, tokenizer=tokenizer)
        if found.reason:
            return Step("indexes", "to run", reasons=(found.reason,), **estimate)
        self.indexes_made = list(found.refs)
        return Step("indexes", "done", refs=tuple(map(str, found.refs)))

    def snapshot(self) -> Step:
        """The snapshot of memories, their codec and tokenizer, and the indexes."""
        if missing := self._missing("memory", "indexes"):
            return waiting("snapshot", missing, seconds=self.estimates.seconds("snapshot"))
        assert self.memories is not None, "the memories are done"
        support = [self.made["codec"], self.made["tokenizer"], *self.indexes_made]
        refs = [*(row.ref for row in self.memories), *support]
        identity = snapshot_id((ref.name, ref.version) for ref in refs)
        if not self._is_pinned(identity):
            seconds = self.estimates.seconds("snapshot")
            return Step("snapshot", "to run", reasons=("this set was never pinned",), seconds=seconds)
        self.identity = identity
        return Step("snapshot", "done", refs=(identity,))

    def core(self) -> Step:
        """The core."""
        params, name = self.params.assembly, f"core/{self.params.assembly.name}"
        estimate: dict[str, Any] = {
            "seconds": self.estimates.trained("core", name, params.steps),
            "bytes": self.estimates.bytes(name),
        }
        if missing := self._missing("tokenizer", "codec", "memory"):
            return waiting("core", missing, self._changed(name, params), **estimate)
        assert self.memories is not None, "the memories are done"
        codec, tokenizer = self.made["codec"], self.made["tokenizer"]
        chosen = select_elements(self.memories, params.max_elements)
        recipe = core_recipe(params, codec, tokenizer, self.sources.shards, chosen)
        inputs = [codec, tokenizer, *self.sources.shards]
        return self._keep(step_of(self.known, "core", name, recipe, inputs, **estimate))

    def evaluation(self) -> Step:
        """The evaluation of the snapshot against the core."""
        params, name = self.params.evaluation, f"evaluation/{self.params.evaluation.name}"
        estimate: dict[str, Any] = {
            "seconds": self.estimates.seconds("evaluation"),
            "bytes": self.estimates.bytes(name, f"{name}/samples"),
        }
        if missing := self._missing("snapshot", "core"):
            return waiting("evaluation", missing, **estimate)
        assert self.identity is not None, "the snapshot is done"
        recipe = evaluation_recipe(params, self.identity, self.made["core"], self.sources.shards)
        row = self.known.find(recipe)
        if row is not None:
            return Step("evaluation", "done", refs=(str(row.ref),))
        reason = "this snapshot was never evaluated so against this core"
        return Step("evaluation", "to run", reasons=(reason,), **estimate)

    def _keep(self, step: Step) -> Step:
        """Remember what a done step made, for the steps after it."""
        if not step.runs:
            self.made[step.name] = Ref.parse(step.refs[0])
        return step

    def _missing(self, *stages: str) -> list[str]:
        """Those of some earlier stages that are not done."""
        done = {
            **dict.fromkeys(self.made, True),
            "memory": self.memories is not None,
            "indexes": bool(self.indexes_made),
            "snapshot": self.identity is not None,
        }
        return [stage for stage in stages if not done.get(stage)]

    def _changed(self, full_name: str, params: BaseModel) -> Iterator[str]:
        """Parameters that differ from those of the newest version."""
        row = self.known.latest(full_name)
        if row is not None:
            yield from changed_params(row.provenance.get("params"), params.model_dump(mode="json"))

    def _even(self) -> list[Ref]:
        """The shards that tokenizer and codec learn from."""
        return [ref for ref in self.sources.shards if not is_worker_shard(ref)]

    def _memory_reasons(self, left: Sequence[str]) -> tuple[str, ...]:
        """Why documents are to be worked on: what differs for one of those that have a memory already."""
        tokenizer, codec = self.made["tokenizer"], self.made["codec"]
        for name in left[:_LOOKED_AT]:
            row = self.known.latest(f"memory/{name}")
            if row is not None:
                recipe = memory_recipe(self.params.memory, "", "", tokenizer, codec)
                params = {key: value for key, value in recipe.params.items() if key != "name"}
                found = differences(self.known, row, Recipe(recipe.name, params, ()), [codec, tokenizer])
                return found if "recipe is" not in found[0] else ("the texts of documents changed",)
        return ("never built",)

    def _memory_estimate(self, to_do: int, total: int) -> dict[str, Any]:
        """Seconds and bytes of so many documents, from earlier builds and from memories that there are."""
        mean = self.estimates.memory_bytes()
        return {
            "seconds": self.estimates.memory_seconds(to_do, total),
            "bytes": None if mean is None else round(mean * to_do),
        }

    def _is_pinned(self, identity: str) -> bool:
        store = self.known.store
        if store is None or store.history.last_pin(identity) is None:
            return False
        try:
            return store.snapshot(identity).id == identity
        except SnapshotNotFound:
            return False
