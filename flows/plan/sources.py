"""The corpora that a chain starts from: one, or the partitions of a source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from store import Ref, Store
from tasks.corpus import CorpusPreview, preview
from tasks.corpus.params import CorpusParams
from tasks.progress import Progress, silent


@dataclass(frozen=True)
class Sources:
    """What ingesting them would give, by the names of the corpora, and which shards memories are built of."""

    by_name: Mapping[str, CorpusPreview]
    takes: Callable[[Ref], bool] | None = None

    @classmethod
    def read(
        cls,
        store: Store | None,
        corpora: Sequence[CorpusParams],
        takes: Callable[[Ref], bool] | None = None,
        progress: Progress = silent,
    ) -> "Sources":
        """Read them; without `takes` all worker shards count. Raises `BadCorpus` where an ingestion would."""
        return cls({params.corpus: preview(store, params, progress) for params in corpora}, takes)

    @cached_property
    def shards(self) -> tuple[Ref, ...]:
        """The shards of all of them."""
        return tuple(shard for source in self.by_name.values() for shard in source.shards)

    @cached_property
    def documents(self) -> list[tuple[str, str]]:
        """Name and digest of each document that a memory is built of."""
        return [
            document
            for source in self.by_name.values()
            for shard, documents in source.documents.items()
            if self.takes is None or self.takes(shard)
            for document in documents
        ]
