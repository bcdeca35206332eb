"""What is measured of the peers. Each function runs in a child process; see `benchmarks.child`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from benchmarks.payloads import PAYLOAD_BYTES, payload, warm_up

PUT_THREADS = 16
GET_THREADS = 8
_BATCH = 512


def put_loose(url: str, count: int) -> dict[str, Any]:
    """One conditional PUT per element, from 16 threads of one boto3 client."""
    client, bucket, prefix = _client(url, PUT_THREADS)

    def put(number: int) -> None:
        client.put_object(Bucket=bucket, Key=f"{prefix}/{number:07d}", Body=payload(number), IfNoneMatch="*")

    warm_up()
    put(count)  # so that the first connection is open
    return _timed(put, range(count), PUT_THREADS)


def get_objects(url: str, keys: list[str], *, hashed: bool = False) -> dict[str, Any]:
    """Download whole objects from 8 threads of one boto3 client, unlooked at or `hashed`."""
    client, bucket, prefix = _client(url, GET_THREADS)

    def get(key: str) -> object:
        body = client.get_object(Bucket=bucket, Key=f"{prefix}/{key}")["Body"].read()
        return hashlib.sha256(body).digest() if hashed else len(body)

    client.head_object(Bucket=bucket, Key=f"{prefix}/{keys[0]}")
    return _timed(get, keys, GET_THREADS)


def write_files(url: str, count: int) -> dict[str, Any]:
    """One file per element, flushed to disk, from 16 threads; the folder is flushed at the end."""
    folder = Path(url)
    folder.mkdir(parents=True)

    def write(number: int) -> None:
        with (folder / f"{number:07d}").open("wb") as file:
            file.write(payload(number))
            file.flush()
            os.fsync(file.fileno())

    warm_up()
    result = _timed(write, range(count), PUT_THREADS)
    began = time.perf_counter()
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return {"seconds": result["seconds"] + time.perf_counter() - began}


def read_files(url: str, keys: list[str], *, hashed: bool = False) -> dict[str, Any]:
    """Read whole files from 8 threads, unlooked at or `hashed`."""

    def read(key: str) -> object:
        body = (Path(url) / key).read_bytes()
        return hashlib.sha256(body).digest() if hashed else len(body)

    return _timed(read, keys, GET_THREADS)


def icechunk_write(url: str, count: int) -> dict[str, Any]:
    """Write the elements as chunks of one array and commit."""
    import icechunk
    import numpy as np
    import zarr

    repository = icechunk.Repository.create(_icechunk_storage(url))
    warm_up()
    began = time.perf_counter()
    session = repository.writable_session("main")
    array = zarr.create_array(
        session.store,
        name="elements",
        shape=(count, PAYLOAD_BYTES),
        chunks=(1, PAYLOAD_BYTES),
        dtype="uint8",
        compressors=None,
        filters=None,
    )
    for start, end in _batches(count):
        block = b"".join(payload(number) for number in range(start, end))
        array[start:end] = np.frombuffer(block, "uint8").reshape(end - start, PAYLOAD_BYTES)
    session.commit("benchmark")
    return {"seconds": time.perf_counter() - began}


def icechunk_read(url: str, count: int) -> dict[str, Any]:
    """Read all elements of a repository that is open already."""
    import icechunk
    import zarr

    session = icechunk.Repository.open(_icechunk_storage(url)).readonly_session("main")
    array = zarr.open_array(session.store, path="elements", mode="r")
    began = time.perf_counter()
    size = sum(array[start:end].nbytes for start, end in _batches(count))
    return {"seconds": time.perf_counter() - began, "bytes": size}


def _batches(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _BATCH):
        yield start, min(start + _BATCH, count)


def _icechunk_storage(url: str) -> Any:
    import icechunk

    if not url.startswith("s3:"):
        return icechunk.local_filesystem_storage(url)
    parts = urlsplit(url)
    return icechunk.s3_storage(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"],
        allow_http=True,
        force_path_style=True,
        region=os.environ["AWS_DEFAULT_REGION"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
    )


def _client(url: str, threads: int) -> tuple[Any, str, str]:
    parts = urlsplit(url)
    config = Config(
        max_pool_connections=threads,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"},
    )
    return boto3.client("s3", config=config), parts.netloc, parts.path.strip("/")


def _timed(work: Callable[[Any], Any], items: Any, threads: int) -> dict[str, Any]:
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, items):
            pass
    return {"seconds": time.perf_counter() - began}
