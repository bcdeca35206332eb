"""Counting what a store asks of its storage."""

from __future__ import annotations

from typing import Any

from store.backend import Backend
from store.backend.s3 import S3Backend


class Requests:
    """Counts what a backend asks for: reads, on S3 the HTTP requests that botocore sends, and bytes read."""

    def __init__(self, backend: Backend) -> None:
        self.count = 0
        self.bytes = 0
        self.keys: list[str] = []
        read = backend.read

        def counted(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
            data = read(key, offset=offset, length=length)
            self.count += not isinstance(backend, S3Backend)
            self.bytes += len(data)
            self.keys.append(key)
            return data

        def sent(**_: Any) -> None:
            self.count += 1

        backend.read = counted  # type: ignore[method-assign]
        if isinstance(backend, S3Backend):
            for client in (backend._client, backend._client_once):
                client.meta.events.register("before-send.s3", sent)
