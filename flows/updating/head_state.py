"""What a head stands for before it is brought up to date: its snapshot, what is frozen in it, its corpora."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flows.errors import UsageError
from flows.formatting import section
from flows.params import Params
from flows.provenance.corpora import corpus_name, recorded_corpora
from store import Ref, Snapshot, Store
from tasks.corpus.params import PLACE

_FROZEN = ("tokenizer", "codec", "reranker")
_MADE_AGAIN = ("memory", "index", *_FROZEN)


@dataclass(frozen=True)
class HeadState:
    """The elements of a head's snapshot by their part in an update; all empty for a head that is new."""

    head: str
    snapshot: Snapshot | None = None
    memories: dict[str, str] = field(default_factory=dict)
    """Version by full name."""
    frozen: dict[str, Ref] = field(default_factory=dict)
    """The tokenizer, codec and reranker, by kind."""
    indexes: dict[str, str] = field(default_factory=dict)
    """The parts of its indexes as references, by full name."""
    others: tuple[Ref, ...] = ()
    """What an update neither makes nor drops, such as skills."""
    corpora: dict[str, Ref] = field(default_factory=dict)
    """Reports of the corpora that it was made from, by name."""
    is_partition: dict[str, bool] = field(default_factory=dict)
    """Whether a corpus is a partition of another, by name, where its report is still there to say so."""

    @classmethod
    def read(cls, store: Store, head: str) -> "HeadState":
        """Read it; raises `ElementNotFound` for a snapshot without exactly one codec and tokenizer."""
        identity = store.head(head)
        if identity is None:
            return cls(head)
        snapshot = store.snapshot(identity)
        frozen = {kind: snapshot.one(kind).ref for kind in ("tokenizer", "codec")}
        if snapshot.kinds.get("reranker"):
            frozen["reranker"] = snapshot.one("reranker").ref
        refs = list(_refs(snapshot))
        corpora = {corpus_name(report): report for report in recorded_corpora(store, identity)}
        rows = store.catalog().get_all([report.version for report in corpora.values()])
        return cls(
            head,
            snapshot,
            {ref.name: ref.version for ref in refs if ref.kind == "memory"},
            frozen,
            {ref.name: str(ref) for ref in refs if ref.kind == "index"},
            tuple(ref for ref in refs if ref.kind not in _MADE_AGAIN),
            corpora,
            {
                name: "partition" in section(rows[report.version].provenance, "params")
                for name, report in corpora.items()
                if report.version in rows
            },
        )

    @property
    def id(self) -> str | None:
        """The id of the snapshot, None for a new head."""
        return None if self.snapshot is None else self.snapshot.id

    def partitions(self, corpus: str) -> list[str]:
        """The partitions of a corpus that it was made from."""
        start = f"{corpus}."
        return [
            name.removeprefix(start)
            for name in self.corpora
            if name.startswith(start) and self.is_partition.get(name, True)
        ]

    def check_source(self, params: Params) -> None:
        """Refuse a source whose update would retire all that another one has left here.

        Raises:
            UsageError: the head was made from another corpus, or from partitions where there are none now, or
                the other way round.
        """
        corpus = params.corpus
        if corpus.in_partitions:
            known = bool(self.partitions(corpus.name))
        else:
            known = corpus.name in self.corpora and not self.is_partition.get(corpus.name, False)
        if known or not self.corpora:
            return
        what = (
            f"partitions of {corpus.name} ({PLACE} in corpus.path)" if corpus.in_partitions else corpus.name
        )
        made = ", ".join(list(self.corpora)[:3]) + (", ..." if len(self.corpora) > 3 else "")
        raise UsageError(
            f"head {self.head} was made from {made} and not from {what}, so all it holds would be retired; "
            "give another head, or the source that it was made from"
        )

    def differing(self, store: Store, params: Params) -> list[str]:
        """Sentences on parameters that have no effect, because what they would train is frozen here."""
        wanted: dict[str, dict[str, Any]] = {
            "tokenizer": params.tokenizer.model_dump(mode="json", exclude={"file"}),
            "codec": params.codec.model_dump(mode="json"),
        }
        return [
            sentence
            for kind, values in wanted.items()
            if kind in self.frozen
            for sentence in _differing(store, kind, self.frozen[kind], values)
        ]


def _refs(snapshot: Snapshot) -> Iterable[Ref]:
    for table in snapshot.scan(["name", "version"]):
        yield from map(Ref, table["name"].to_pylist(), table["version"].to_pylist())


def _differing(store: Store, kind: str, frozen: Ref, wanted: dict[str, Any]) -> list[str]:
    row = store.catalog().get(frozen.version)
    used = row.provenance.get("params") if row is not None else None
    if not isinstance(used, dict):
        return []
    names = [f"{kind}.{name}" for name in sorted(wanted) if name in used and used[name] != wanted[name]]
    if not names:
        return []
    return [
        f"{frozen.name}@{frozen.version[:12]} stays as it is: {', '.join(names)} changed nothing; "
        "train anew with --retrain"
    ]
