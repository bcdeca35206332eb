"""What is measured of the store itself. Each function runs in a child process; see `benchmarks.child`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from benchmarks.payloads import PAYLOAD_BYTES, elements, warm_up
from store import Ref, Store
from store.backend import Backend, open_backend
from store.backend.s3 import S3Backend
from store.format import sha256, snapshot_key, snapshot_rows_key, unseal
from store.rows import Row
from store.snapshot import encode_snapshot


def publish(url: str, count: int) -> dict[str, Any]:
    """Publish `count` elements in one commit: open, write, finish, commit."""
    entered = time.perf_counter()
    Store.create(url)
    warm_up()
    began = time.perf_counter()
    build = Store.open(url).build("benchmark", owner="benchmark")
    with build.writer("all") as writer:
        for element in elements(count):
            writer.add(element)
        receipt = writer.finish()
    written = time.perf_counter()
    build.commit([receipt], message="benchmark")
    ended = time.perf_counter()
    return {"seconds": ended - began, "commit_s": ended - written, "prepared_s": began - entered}


def pin(url: str) -> dict[str, Any]:
    """Pin everything."""
    store = Store.open(url)
    began = time.perf_counter()
    columns = ("name", "version")
    tables = list(store.catalog().scan(columns))
    pairs = (
        pair
        for table in tables
        for pair in zip(*(table[column].to_pylist() for column in columns), strict=True)
    )
    snapshot = store.pin((Ref(name, version) for name, version in pairs), message="benchmark")
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "snapshot": snapshot.id, "packs": sorted(snapshot.packs())}


def stream(url: str, snapshot: str) -> dict[str, Any]:
    """Read a whole snapshot that is open already."""
    opened = Store.open(url).snapshot(snapshot)
    began = time.perf_counter()
    count = size = 0
    for _, payload in opened.stream():
        count += 1
        size += len(payload)
    return {"seconds": time.perf_counter() - began, "count": count, "bytes": size}


def create(url: str) -> dict[str, Any]:
    """Make an empty store."""
    Store.create(url)
    return {}


def fill(url: str, rows: int) -> dict[str, Any]:
    """Make a store with that many synthetic rows in its index, in commits of up to 10,000."""
    from benchmarks.synthetic import synthetic_store

    began = time.perf_counter()
    synthetic_store(url, rows, per_commit=min(rows, 10_000))
    return {"seconds": time.perf_counter() - began}


def commit(url: str, count: int, first: int) -> dict[str, Any]:
    """Open a store anew and commit `count` elements to it."""
    warm_up()
    began = time.perf_counter()
    store = Store.open(url)
    build = store.build(f"benchmark-{first}", owner="benchmark")
    with build.writer("all") as writer:
        for element in elements(count, first=first):
            writer.add(element)
        receipt = writer.finish()
    build.commit([receipt], message="benchmark")
    return {"seconds": time.perf_counter() - began}


def read_one(url: str, snapshot: str, name: str) -> dict[str, Any]:
    """Open a store and a snapshot by its id and read one element, counting what is asked of the storage."""
    backend = open_backend(url)
    counted = count_requests(backend)
    began = time.perf_counter()
    payload = Store(backend).snapshot(snapshot).read(name)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "requests": len(counted), "bytes": sum(counted), "payload": len(payload)}


def count_requests(backend: Backend) -> list[int]:
    """Record the bytes of every read from now on; on S3 of every HTTP answer, whatever asked for it."""
    sizes: list[int] = []
    clients = (backend._client, backend._client_once) if isinstance(backend, S3Backend) else ()
    for client in clients:
        client.meta.events.register(
            "response-received.s3",
            lambda response_dict, **_: sizes.append(int(response_dict["headers"].get("content-length", 0))),
        )
    if not clients:
        read = backend.read

        def counted(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
            data = read(key, offset=offset, length=length)
            sizes.append(len(data))
            return data

        backend.read = counted  # type: ignore[method-assign]
    return sizes


def put_large_snapshot(url: str, count: int) -> dict[str, Any]:
    """Put a snapshot of `count` elements in place of which only the last exists; its id and that name."""
    store = Store.create(url)
    [real] = elements(1, first=count)
    store.publish([real], message="the element that is read")
    [row] = store.catalog().rows()
    rows = [row, *(_row_like(row, number) for number in range(count - 1))]
    head, table = encode_snapshot(rows)
    record = unseal(head, "head")
    store.backend.put(snapshot_rows_key(record["rows"]), table)
    store.backend.put(snapshot_key(record["id"]), head)
    return {"snapshot": record["id"], "name": row.name, "head": len(head), "rows": len(table)}


def _row_like(row: Row, number: int) -> Row:
    version, digest, pack = (sha256(f"{what} {number}".encode()) for what in ("v", "d", "p"))
    return replace(
        row,
        name=f"memory/doc/{number:07d}",
        version=version,
        digest=digest,
        pack=pack,
        length=PAYLOAD_BYTES,
        provenance={**row.provenance, "recipe": f"{number:064x}", "source": f"document {number}"},
    )
