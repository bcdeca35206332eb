"""A backend together with a cache for what is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from store.backend import Backend, Body, ObjectInfo
from store.cache import ReadCache


class CachedBackend:
    """Another backend, and a cache that reads of bytes with a known digest look into first.

    Only `store.region` does so, because only there a digest is known. Everything else (refs, leases, holds,
    the log, listings) goes to the storage as it would without a cache.
    """

    def __init__(self, backend: Backend, cache: ReadCache) -> None:
        self.url = backend.url
        self.cache = cache
        self._backend = backend

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return self._backend.read(key, offset=offset, length=length)

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self._backend.read_with_token(key)

    def info(self, key: str) -> ObjectInfo | None:
        return self._backend.info(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self._backend.list(prefix, after=after)

    def put(self, key: str, body: Body) -> None:
        self._backend.put(key, body)

    def create(self, key: str, body: Body) -> None:
        self._backend.create(key, body)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        self._backend.replace(key, body, token=token)

    def delete(self, key: str) -> None:
        self._backend.delete(key)

    def now(self) -> datetime:
        return self._backend.now()
