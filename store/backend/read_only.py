"""Storage that is never written: the part that archives share, and a view of any other storage.

An export holds exactly one snapshot, and its table of contents is what makes it checkable. So whatever would
change it is refused with `ReadOnly` before anything happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NoReturn

from store.backend import Backend, Body, ObjectInfo
from store.errors import ReadOnly


class Unwritable:
    """The writing half of a `Backend`, refused."""

    url: str

    def put(self, key: str, body: Body) -> None:
        self._refuse(key)

    def create(self, key: str, body: Body) -> None:
        self._refuse(key)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        self._refuse(key)

    def delete(self, key: str) -> None:
        self._refuse(key)

    def now(self) -> datetime:
        """Return this machine's time; nothing in an export ages, and asking a folder would write to it."""
        return datetime.now(UTC)

    def _refuse(self, key: str) -> NoReturn:
        raise ReadOnly(
            f"cannot write {key}: {self.url} is an export; copy it into a store with "
            "`cellar snapshot import` and write there"
        )


class ReadOnlyBackend(Unwritable):
    """Another backend, of which only the reading half can be used."""

    def __init__(self, backend: Backend) -> None:
        self.url = backend.url
        self._backend = backend

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return self._backend.read(key, offset=offset, length=length)

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self._backend.read_with_token(key)

    def info(self, key: str) -> ObjectInfo | None:
        return self._backend.info(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self._backend.list(prefix, after=after)
