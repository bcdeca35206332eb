"""The storage under a store: a flat space of keys with conditional writes.

Two implementations follow one protocol and pass one conformance suite: `LocalBackend` for `file:` and
`S3Backend` for `s3://`. `TarBackend` reads an archive by the same protocol and refuses to write. They turn
every operating-system or network failure into one of `store.errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from store.errors import InvalidURL
from store.paths import usable_path

__all__ = ["Backend", "Body", "HashedBytes", "ObjectInfo", "open_backend"]


class HashedBytes(bytearray):
    """A body that knows its SHA-256 (hex, empty until it was computed), so that no backend computes it again.

    A wrong one does no harm: a server refuses the body, and a reader the object.
    """

    sha256: str = ""


Body = bytes | bytearray

_ARCHIVE = re.compile(r".+\.(tar(\.\w+)?|t[bgx]z2?|tzst)", re.IGNORECASE)
"""Names of tar files; compressed ones too, because what opens them says how to unpack them."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as a listing shows it. `modified` is in the storage's own clock, never in ours."""

    key: str
    size: int
    modified: datetime


class Backend(Protocol):
    """What the store needs from a storage.

    Conditional writes report the four outcomes that differ for the caller: nothing raised (it landed),
    `KeyExists` or `TokenMismatch` (refused), `Contended` (not done, try again), `AnswerLost` (unknown).
    Tokens are opaque and change with the content; they are never digests that anyone may rely on.
    """

    url: str

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `offset` (fewer at the end of the object); `KeyMissing` if absent."""
        ...

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and the token that `replace` takes; `KeyMissing` if absent."""
        ...

    def info(self, key: str) -> ObjectInfo | None:
        """Return size and time of an object, None if it is absent."""
        ...

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Yield objects whose key starts with `prefix` and sorts after `after`, all of them.

        The keys of one folder come in order; whether `a/b` comes before `a-b` differs between servers.
        """
        ...

    def put(self, key: str, body: Body) -> None:
        """Write unconditionally: for keys that name their content, where every writer writes the same."""
        ...

    def create(self, key: str, body: Body) -> None:
        """Write only if the key is absent; `KeyExists` otherwise."""
        ...

    def replace(self, key: str, body: Body, *, token: str) -> None:
        """Write only over the content that `token` came with; `TokenMismatch` or `KeyMissing` otherwise."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; removing an absent one is no error.

        When it returns, no copy of the request is under way; `StorageUnavailable` if one may be.
        """
        ...

    def now(self) -> datetime:
        """Return the time in the clock that sets `modified`, so that their difference is a true age."""
        ...


def open_backend(url: str) -> Backend:
    """Return the backend for `s3://bucket/prefix`, `file:/path`, `tar:/path` or a plain path.

    A file that is named as an archive (`.tar`) is opened as one, with any scheme or none. Nothing is read or
    written yet. Raises `InvalidURL` for anything else; the error never repeats user names or passwords that
    somebody may have written into the URL.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme or len(scheme) < 2:
        if not url:
            raise InvalidURL("the store URL is empty; write a folder, file:/path or s3://bucket/prefix")
        return _local(url)
    if scheme == "file":
        host, path = "", rest
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            path = slash + path
        if host not in ("", "localhost") or not path:
            raise InvalidURL("a file: URL names a folder on this machine; write file:/path")
        return _local(unquote(path))
    if scheme == "tar" and rest:
        return _archive(_place(unquote(rest)))
    if scheme == "s3":
        try:
            parts = urlsplit(url)
        except ValueError as error:  # an opening bracket without a closing one
            raise InvalidURL(
                "the bucket name in the s3:// URL is not valid; write s3://bucket/prefix"
            ) from error
        if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidURL(
                "an S3 store URL is s3://bucket/prefix; credentials come from the AWS environment"
            )
        from store.backend.s3 import S3Backend  # boto3 takes a third of a second to import

        return S3Backend(parts.netloc, parts.path.strip("/"))
    raise InvalidURL(f"{scheme}: is not a store URL; write a folder, file:/path or s3://bucket/prefix")


def _local(path: str) -> Backend:
    place = _place(path)
    if _ARCHIVE.fullmatch(place.name) and not place.is_dir():
        return _archive(place)
    from store.backend.local import LocalBackend

    return LocalBackend(place)


def _archive(path: Path) -> Backend:
    from store.backend.tar import TarBackend

    return TarBackend(path)


def _place(path: str) -> Path:
    """Return the absolute form of a path that the operating system can take.

    Whatever else it may refuse is said by what opens the place; these it refuses even to look for.
    """
    return usable_path(path, InvalidURL, "the store URL").absolute()
