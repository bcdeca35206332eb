"""The pins that a chain would have left of a snapshot, from what the store says: for summary and report."""

from collections.abc import Sequence
from dataclasses import asdict

from flows.ingest_corpus import corpus_pin
from flows.pins import Pin, Stage
from store import Ref, Snapshot, Store
from tasks.corpus.step import result_of
from tasks.memory import Figures, pool


def pins_of(
    store: Store, snapshot: Snapshot, *, corpora: Sequence[Ref], core: Ref, evaluation: Sequence[Ref]
) -> dict[Stage, Pin]:
    """Pins of all stages; `evaluation` are its summary and its samples.

    The figures of memories are those of the memories that the snapshot holds, and the figures of the corpus
    those of the newest one: the store does not say which other documents were tried and rejected.
    """
    rows = [row for kind in snapshot.kinds for row in snapshot.rows(kind)]
    total = pool(Figures.from_dict(row.facts) for row in rows if row.kind == "memory")
    memory = {
        **asdict(total),
        "published": total.documents,
        "rejected": 0,
        "cell_bytes_per_block": total.cell_bytes_per_block,
    }

    def refs(*kinds: str) -> tuple[str, ...]:
        return tuple(str(row.ref) for row in rows if row.kind in kinds)

    return {
        "corpus": corpus_pin(result_of(corpora[0], store.read(corpora[0]), reused=True)),
        "tokenizer": Pin(stage="tokenizer", refs=refs("tokenizer")),
        "codec": Pin(stage="codec", refs=refs("codec")),
        "memory": Pin(stage="memory", snapshot=snapshot.id, figures=memory),
        "indexes": Pin(stage="indexes", refs=refs("index", "reranker")),
        "snapshot": Pin(stage="snapshot", snapshot=snapshot.id),
        "core": Pin(stage="core", refs=(str(core),)),
        "evaluation": Pin(stage="evaluation", refs=tuple(map(str, evaluation)), snapshot=snapshot.id),
    }
