"""The documents of a text: read from a corpus of the store or from files, without a host."""

import hashlib
from collections.abc import Callable, Iterator, Sequence

from store import Ref, Store
from store.errors import ElementNotFound
from store.paths import usable_path
from tasks.corpus import CorpusParams, Document, Skipped, load_shard, open_report, open_source
from tasks.errors import BadCorpus
from tasks.shadows.params import TextSource

_MOST_CHARACTERS = 50_000_000
_RECORDS = {".jsonl": "--jsonl", ".parquet": "--parquet"}
"""Files that hold texts among other things, and the option of `cellar corpus build` that reads them."""


def read_documents(
    store: Store, source: TextSource, *, told: Callable[[str], None] | None = None
) -> list[Document]:
    """The documents of a source, each text once, in a stable order.

    `told` is told in a sentence of files that cannot be used, where others of their folder can.
    Raises `BadCorpus` for files that cannot be used or a prefix that no document has, and `ElementNotFound`
    for a corpus that the store lacks.
    """
    if source.corpus is not None:
        found = _of_corpus(store, source.corpus)
    elif source.path is not None:
        found = _of_files(source)
    else:
        raise BadCorpus("no text is named; give a corpus or the path of text files")
    seen: set[str] = set()
    kept: list[Document] = []
    skipped: list[str] = []
    files = 0
    for document in found:
        if not document.name.startswith(source.prefix):
            continue
        files += 1
        if isinstance(document, Skipped):
            skipped.append(f"{document.name}: {document.reason}")
        elif document.digest not in seen:
            seen.add(document.digest)
            kept.append(document)
    if not kept:
        what = source.corpus or str(source.path)
        if source.prefix:
            raise BadCorpus(f"{what} has no document that begins with {source.prefix!r}; give another prefix")
        unusable = f" that can be used ({skipped[0]})" if skipped else ""
        raise BadCorpus(f"{what} has no text{unusable}; give another")
    if skipped and told is not None:
        told(f"{source.path}: {len(skipped):,} of {files:,} files are left out, the first is {skipped[0]}")
    return kept


def digest_of(documents: Sequence[Document]) -> str:
    """SHA-256 over the digests of documents in their order."""
    return hashlib.sha256("\n".join(document.digest for document in documents).encode()).hexdigest()


def _of_corpus(store: Store, name: str) -> Iterator[Document | Skipped]:
    row = store.catalog().latest(f"corpus/{name}/report")
    if row is None:
        raise ElementNotFound(f"{store.url} has no corpus {name}; make it with `cellar corpus build`")
    for shard in open_report(store, row.ref).shards:
        yield from _of_shard(store, shard)


def _of_shard(store: Store, shard: Ref) -> list[Document]:
    return load_shard(store.read(shard))


def _of_files(source: TextSource) -> Iterator[Document | Skipped]:
    assert source.path is not None
    path = usable_path(source.path, BadCorpus, "the path of a text")
    single = not path.is_dir()
    if single and (option := _RECORDS.get(path.suffix.lower())) is not None:
        raise BadCorpus(
            f"{path} holds records, not text; make a corpus of it with `cellar corpus build {option} {path}` "
            "and name that"
        )
    params = CorpusParams(
        name="text",
        reader="text" if single else "folder",
        path=path,
        max_characters=_MOST_CHARACTERS,
        **({} if single else {"pattern": source.pattern}),
    )
    yield from open_source(params).items()
