"""What trainings and evaluations of a core read: memories of one side of the split, and their documents."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from store import Ref, Row, Snapshot, Store
from tasks.assembly.readout import CellTable, TokenTable
from tasks.codec import Codec
from tasks.corpus import Document, Tokenizer, element_split, is_worker_shard, load_shard
from tasks.errors import TooLittleText
from tasks.memory import decode_cells

LEAST_ELEMENTS = 2
"""Train-split memories that training needs: a right one and a wrong one."""


def check_train_split(snapshot: Snapshot) -> None:
    """Raise `TooLittleText` unless a snapshot holds the train-split memories that training a core needs."""
    found = sum(element_split(row.name) == "train" for row in snapshot.rows("memory"))
    if found < LEAST_ELEMENTS:
        raise TooLittleText(
            f"snapshot {snapshot.id[:12]} holds {found} train-split memories, training a core needs "
            f"{LEAST_ELEMENTS}; give a larger corpus, or lower the thresholds of publication"
        )


def language_documents(store: Store, shards: Sequence[Ref], tokenizer: Tokenizer) -> list[NDArray[np.uint16]]:
    """Token ids of the even shards' documents, in order."""
    documents: list[NDArray[np.uint16]] = []
    for ref in shards:
        if not is_worker_shard(ref):
            documents += tokenizer.encode_many([document.text for document in load_shard(store.read(ref))])
    return documents


def worker_documents(
    store: Store, shards: Sequence[Ref], tokenizer: Tokenizer, memories: Sequence[Row]
) -> dict[str, NDArray[np.uint16]]:
    """Token ids of the odd shards' documents that `memories` were made from, by full name.

    A document whose text changed since its memory was made counts as another one, by its digest.
    """
    made_from = {row.name: row.provenance.get("document") for row in memories}

    def belongs(document: Document) -> bool:
        name = f"memory/{document.name}"
        return name in made_from and made_from[name] in (None, document.digest)

    found: dict[str, NDArray[np.uint16]] = {}
    for ref in shards:
        if is_worker_shard(ref):
            documents = [d for d in load_shard(store.read(ref)) if belongs(d)]
            ids = tokenizer.encode_many([document.text for document in documents])
            found.update(zip((f"memory/{d.name}" for d in documents), ids, strict=True))
    return found


def open_tables(
    snapshot: Snapshot, codec: Codec, rows: Sequence[Row], texts: dict[str, NDArray[np.uint16]]
) -> tuple[CellTable, TokenTable]:
    """The cells of some memories and the tokens of their documents, in the order of `rows`.

    Raises `TooLittleText` when a memory's document is not among `texts`.
    """
    missing = [row.name for row in rows if row.name not in texts]
    if missing:
        raise TooLittleText(
            f"the corpus lacks the documents of {len(missing)} memories, the first {missing[0]}; "
            "give the shards that they were built from"
        )
    stored = {
        row.name: decode_cells(payload, codec.architecture) for row, payload in snapshot.stream(list(rows))
    }
    cells = [stored[row.name].dequantise() for row in rows]
    table = CellTable(codec, cells, [stored[row.name].length for row in rows])
    return table, TokenTable([texts[row.name] for row in rows])
