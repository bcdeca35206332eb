"""A process that reads index files with forged footers, and would be ended by what pyarrow cannot stand.

    python -m tests.store.forged_footers FOLDER

It prints how many of them were read and how many were refused.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from store.backend import Backend, open_backend
from store.errors import IntegrityError
from store.format import INDEX_PREFIX, sha256
from store.index import encode_index
from store.region import Region
from store.rows import SCHEMA, decode_batches, decode_table
from store.sparse import SparseTable, regions_of

MUTATIONS = 400
_KEY = f"{INDEX_PREFIX}forged.parquet"


def index_file(rows: int) -> bytes:
    """Return an index file."""
    row = {
        "kind": "skill",
        "pack": sha256(b"pack"),
        "length": 3,
        "media": "text/plain",
        "recipe": "",
        "provenance": "{}",
        "facts": "{}",
        "dtype": "",
        "shape": [2, 3],
        "commit": 1,
    }
    listed = []
    for number in range(rows):
        digest = sha256(str(number).encode())
        own = {"name": f"skill/{number:06}", "version": digest, "digest": digest, "offset": 8 + 3 * number}
        listed.append(row | own | {"requires": [digest] * (number % 3)})
    return encode_index(pa.Table.from_pylist(listed, schema=SCHEMA), {sha256(b"pack"): 10 * rows}).data


def with_other_repetition(data: bytes) -> bytes:
    """Make a list required, which its size statistics contradict."""
    forged = data.replace(b"\x35\x02\x18\x08requires", b"\x35\x00\x18\x08requires")
    assert forged != data
    return forged


def mutated(data: bytes) -> Iterator[bytes]:
    """Yield the file with one byte of its footer changed, many times."""
    draw = random.Random(7)
    start = regions_of(data)[1].offset
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        at = draw.randrange(start, len(data))
        changed[at] = draw.choice((0, draw.randrange(256), changed[at] ^ 1 << draw.randrange(8)))
        yield bytes(changed)


def main(folder: str) -> None:
    """Read each forged file in all ways in which a store reads one; other errors end the process."""
    backend = open_backend(folder)
    data = index_file(1500)
    backend.put(_KEY, data)
    groups, footer = regions_of(data)
    outcomes = {"read": 0, "refused": 0}
    for forged in (data, with_other_repetition(data), *mutated(data)):
        tail = forged[footer.offset :]
        for read, refusal in (
            (partial(decode_table, forged, _KEY), IntegrityError),
            (partial(all_batches, forged), IntegrityError),
            (partial(second_group, backend, groups, footer, tail), IntegrityError),
            (partial(regions_of, forged), ValueError),
        ):
            try:
                read()
                outcomes["read"] += 1
            except refusal:
                outcomes["refused"] += 1
    sys.stdout.write(f"{outcomes['read']} {outcomes['refused']}\n")


def all_batches(data: bytes) -> None:
    """Read a file in small tables."""
    for _ in decode_batches(data, _KEY)[1]:
        pass


def second_group(backend: Backend, groups: Sequence[Region], footer: Region, tail: bytes) -> None:
    """Read one row group by a footer that is known already."""
    SparseTable(backend, _KEY, groups, footer, footer_bytes=tail).read([1])


if __name__ == "__main__":
    main(sys.argv[1])
