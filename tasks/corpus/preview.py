"""What ingesting a source would give, without publishing anything."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from store import Recipe, Ref, Store
from tasks.corpus.document import Document
from tasks.corpus.params import CorpusParams
from tasks.corpus.shards import Spill, is_worker_shard, load_shard
from tasks.corpus.sources import open_source
from tasks.corpus.step import ingest_recipe, read_source, result_of, shard_elements
from tasks.progress import Progress, silent


@dataclass(frozen=True)
class CorpusPreview:
    """The shards that a source has or would have, and name and digest of each document for workers."""

    recipe: Recipe
    report: Ref | None
    """The published report, None where the source changed since it was ingested or never was."""
    shards: tuple[Ref, ...]
    documents: dict[Ref, list[tuple[str, str]]]
    bytes: int
    """Payload bytes of the shards that are not there yet."""

    @property
    def worker_documents(self) -> int:
        """How many documents there are for memory workers."""
        return sum(map(len, self.documents.values()))


def preview(store: Store | None, params: CorpusParams, progress: Progress = silent) -> CorpusPreview:
    """Find an ingested corpus, or read its source as an ingestion would; without a store nothing is found.

    Raises BadCorpus where an ingestion would. `progress` counts documents, of an unknown number.
    """
    source = open_source(params)
    recipe = ingest_recipe(params, source)
    row = store.catalog().find(recipe.fingerprint) if store is not None else None
    if store is not None and row is not None:
        shards = result_of(row.ref, store.read(row), reused=True).shards
        documents = {ref: load_shard(store.read(ref)) for ref in shards if is_worker_shard(ref)}
        return CorpusPreview(recipe, row.ref, tuple(shards), _named(documents), 0)
    found: dict[Ref, list[Document]] = {}
    size = 0
    with (
        tempfile.TemporaryDirectory(prefix="cellar-corpus-") as scratch,
        Spill(Path(scratch), params.shards) as spill,
    ):
        report = read_source(source, spill, Path(scratch) / "ledger", progress)
        for number, element in enumerate(shard_elements(params, spill, report)):
            documents_here = sorted(spill.documents(number), key=lambda document: document.name)
            found[element.ref] = documents_here if is_worker_shard(number) else []
            if store is None or not store.catalog().known([element.version]):
                size += len(element.payload)
    workers = {ref: documents for ref, documents in found.items() if is_worker_shard(ref)}
    return CorpusPreview(recipe, None, tuple(found), _named(workers), size)


def _named(documents: Mapping[Ref, Sequence[Document]]) -> dict[Ref, list[tuple[str, str]]]:
    return {ref: [(one.name, one.digest) for one in some] for ref, some in documents.items()}
