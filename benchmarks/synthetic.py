"""Stores with many indexed rows and hardly any bytes: for what depends on the size of the index only.

The rows are what a memory build publishes, with versions that fit them, but there is one small pack behind
all of them: they are found and listed, not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pyarrow as pa

from store import Element, Store
from store.checkpoint import write_checkpoint_if_due
from store.index import encode_index, write_index
from store.log import PUBLISH, Draft
from store.rows import SCHEMA
from store.visibility import sorted_rows

_PAYLOAD_BYTES = 65_536
_MEDIA = "application/safetensors"
_CODEC, _TOKENIZER = "c" * 64, "d" * 64


def synthetic_store(
    url: str, rows: int, *, per_commit: int, progress: Callable[[int], None] = lambda done: None
) -> Store:
    """Make a store of `rows` indexed elements in commits of `per_commit`, and checkpoints, and return it.

    The same arguments give the same rows. `progress` is called with the number of rows committed so far.
    """
    store = Store.create(url)
    [ref] = store.publish([Element("skill", "pack", b"x", media="text/plain")], message="one small pack")
    row = store.catalog().get(ref.version)
    assert row is not None
    sizes = {row.pack: store.catalog().packs()[row.pack]}
    for start in range(0, rows, per_commit):
        count = min(per_commit, rows - start)
        index = encode_index(sorted_rows(synthetic_rows(start, count, row.pack)), sizes)
        write_index(store.backend, index)
        draft = Draft(
            PUBLISH,
            f"rows {start}",
            {},
            indexes=(index.digest,),
            elements=count,
            bytes=count * _PAYLOAD_BYTES,
            packs=1,
        )
        commit = store._log.append(lambda draft=draft: draft)
        write_checkpoint_if_due(store.backend, store._log, store._catalog, commit)
        progress(start + count)
    return store


def synthetic_rows(start: int, count: int, pack: str) -> pa.Table:
    """Return rows `start` to `start + count` as a table."""
    columns: dict[str, list[object]] = {
        name: [] for name in ("name", "version", "digest", "recipe", "provenance")
    }
    for number in range(start, start + count):
        digest, document, recipe = (_digest(f"{what} {number}") for what in ("payload", "document", "recipe"))
        name = f"synthetic/{number // 1000:06d}/{number % 1000:03d}"
        provenance = (
            f'{{"codec":"codec/c@{_CODEC}","document":"{document}","params":{{"cells":128,"iterations":300,'
            f'"learning_rate":0.05,"loss":0.5,"name":"memory","rank":8,"seed":0,"token_recall":0.99}},'
            f'"recipe":"{recipe}","source":"synthetic.{number}","tokenizer":"tokenizer/t@{_TOKENIZER}","tokens":312}}'
        )
        record = (
            f'{{"kind":"memory","media":"{_MEDIA}","name":"{name}","payload":{{"digest":"{digest}",'
            f'"length":{_PAYLOAD_BYTES}}},"provenance":{provenance},"requires":["{_CODEC}"]}}'
        )
        columns["name"].append(f"memory/{name}")
        columns["version"].append(_digest(record))
        columns["digest"].append(digest)
        columns["recipe"].append(recipe)
        columns["provenance"].append(provenance)
    same = {
        "kind": "memory",
        "pack": pack,
        "offset": 8,
        "length": _PAYLOAD_BYTES,
        "media": _MEDIA,
        "requires": [_CODEC],
        "dtype": "F32",
        "shape": [128, 128],
        "commit": 0,
    }
    facts = [json.dumps({"loss": n % 97 / 97, "steps": n % 300}, separators=(",", ":")) for n in range(count)]
    repeated = {name: [value] * count for name, value in same.items()}
    return pa.table({**columns, **repeated, "facts": facts}, schema=SCHEMA)


def _given(draft: Draft) -> Draft:
    return draft


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
