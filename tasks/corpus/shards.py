"""Shards of a corpus: which one a document belongs to, how they fill on disk, and their Parquet form."""

import hashlib
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from store import Ref
from store.element import check_full_name
from store.errors import InvalidName
from tasks.corpus.document import Document
from tasks.errors import BadPayload

MEDIA = "application/vnd.apache.parquet"
_COLUMNS = ("name", "text", "digest")
_ROW_GROUP = 1024


def shard_of(name: str, shards: int) -> int:
    """The shard of a document: SHA-256 of its name, read as a number, modulo the number of shards."""
    return int(hashlib.sha256(name.encode("utf-8")).hexdigest(), 16) % shards


def shard_name(corpus: str, shard: int) -> str:
    """Element name, without its kind, of one shard."""
    return f"{corpus}/shard-{shard:02d}"


def is_worker_shard(shard: Ref | str | int) -> bool:
    """Whether a shard (reference, element name or number) feeds memory workers: the odd ones do.

    Even shards feed the tokenizer, codec training and the core's language stream. Raises ValueError for a
    name that is no shard's, such as the corpus report.
    """
    if isinstance(shard, int):
        return shard % 2 == 1
    name = shard.name if isinstance(shard, Ref) else shard
    stem, dash, number = name.rpartition("/")[2].rpartition("-")
    if stem != "shard" or not dash or not number.isdecimal():
        raise ValueError(f"{name!r} names no shard; shards are called corpus/<name>/shard-NN")
    return int(number) % 2 == 1


def encode_shard(documents: Iterable[Document]) -> bytes:
    """Parquet bytes of a shard: columns name, text, digest; rows sorted by name; fixed settings.

    Where documents were read is not among them, see `sources_of`. Equal documents give equal bytes in any
    order, with one version of pyarrow (which writes its name inside).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = sorted(((d.name, d.text, d.digest) for d in documents), key=lambda row: row[0])
    columns = [pa.array([row[i] for row in rows], type=pa.large_string()) for i in range(len(_COLUMNS))]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns, names=list(_COLUMNS)),
        sink,
        row_group_size=_ROW_GROUP,
        compression="zstd",
        compression_level=3,
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        version="2.6",
        data_page_version="1.0",
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def sources_of(documents: Iterable[Document]) -> list[str]:
    """Where the documents of a shard were read, in the order of names: a fact beside the shard."""
    return [document.source for document in sorted(documents, key=lambda document: document.name)]


def load_shard(payload: bytes, sources: object = None) -> list[Document]:
    """The documents of a shard, sorted by name, with the `sources` that its facts list, if they do.

    Raises BadPayload when the bytes are no shard.
    """
    import pyarrow as pa

    from tasks.tables import load_table

    table = load_table(payload, dict.fromkeys(_COLUMNS, pa.string()), what="a corpus shard")
    names, texts, digests = (table.column(name).to_pylist() for name in _COLUMNS)
    known = sources if isinstance(sources, list) and len(sources) == len(names) else [""] * len(names)
    documents = list(map(Document, names, texts, map(str, known)))
    if any(one >= other for one, other in pairwise(names)):
        raise BadPayload("the names of a corpus shard do not rise; ingest the corpus again")
    for document, digest in zip(documents, digests, strict=True):
        try:
            check_full_name(f"memory/{document.name}")
        except InvalidName as error:
            raise BadPayload(f"a corpus shard holds a document that has no name ({error})") from error
        if document.digest != digest:
            raise BadPayload(
                f"a corpus shard holds another text of {document.name} than its digest says; ingest the "
                "corpus again"
            )
    return documents


class Spill:
    """Documents on their way into shards, one growing file per shard, so that memory holds none of them."""

    def __init__(self, folder: Path, shards: int) -> None:
        self._files = [folder.joinpath(f"{i:03d}").open("w+b") for i in range(shards)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()

    def add(self, document: Document) -> None:
        row = [document.name, document.text, document.source]
        file = self._files[shard_of(document.name, len(self._files))]
        file.write(json.dumps(row).encode("ascii") + b"\n")

    def documents(self, shard: int) -> list[Document]:
        """Everything added to one shard, in the order of arrival."""
        file = self._files[shard]
        file.seek(0)
        return [Document(*json.loads(line)) for line in file]
