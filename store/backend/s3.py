"""An S3 bucket, or a prefix in one, as a backend, through boto3.

Endpoint, region and credentials come from the usual AWS variables and profiles. Reads and content-addressed
writes are repeated by botocore; conditional writes are sent once, because a repeated one answers 412 to its
own success, and deciding what happened is the business of `store.conditional`. Deletions are the business of
`store.backend.s3_once`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import chain, repeat
from typing import Any, Literal
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore import exceptions as boto
from botocore.config import Config
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserError

from store.backend import Body, HashedBytes, ObjectInfo
from store.backend.s3_errors import endpoint_name, status_of, translate, translate_conditional
from store.backend.s3_once import send_until_known
from store.errors import (
    ConfigurationError,
    InvalidURL,
    KeyExists,
    KeyMissing,
    TokenMismatch,
    Unreachable,
)

_ATTEMPTS = 4
_FIRST_PAGE = 16
"""Keys that the first request of a listing asks for: some callers need the first key only."""
_PAGE = 1000
_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "max_pool_connections": 32,
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
}

_UNSIGNED_BODIES = {"payload_signing_enabled": False}
"""The signature covers the header with the body's SHA-256, which the server compares with the body: to sign
the body as well would hash every pack once more on both sides."""


class S3Backend:
    """Objects of `bucket` below `prefix`; usable from several threads, one instance per process."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        try:
            core = botocore.session.get_session()
            core.register_component("data_loader", _descriptions())
            session = boto3.session.Session(botocore_session=core)
            client = session.client("s3", config=_config(_ATTEMPTS, _UNSIGNED_BODIES))
            style = {"addressing_style": "path"} if _is_foreign(client) else {}
            if style:
                client = session.client("s3", config=_config(_ATTEMPTS, _UNSIGNED_BODIES | style))
            self._client = client
            self._client_once = session.client("s3", config=_config(1, style))
            self._endpoint = endpoint_name(self._client.meta.endpoint_url)
        except (boto.BotoCoreError, ValueError) as error:
            # Without its cause, which quotes the endpoint: what is in there may be a password.
            raise _misconfigured(error, self.url) from None
        if "@" in urlsplit(self._client.meta.endpoint_url).netloc:
            # What botocore raises quotes the endpoint, and tracebacks show that.
            raise ConfigurationError(
                f"cannot open {self.url}: AWS_ENDPOINT_URL_S3 holds a user name or password, which S3 does "
                "not take; leave them out and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )

    @property
    def client(self) -> Any:
        """The boto3 client underneath, for what only `store.doctor` asks of a server."""
        return self._client

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return self._get(key, offset, length)[0]

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self._get(key, 0, None)

    def info(self, key: str) -> ObjectInfo | None:
        try:
            with self._translated("look at", key):
                answer = self._client.head_object(Bucket=self.bucket, Key=self.prefix + key)
                return ObjectInfo(key=key, size=answer["ContentLength"], modified=answer["LastModified"])
        except KeyMissing:
            return None

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        start = {"StartAfter": self.prefix + after} if after else {}
        begun: set[tuple[str, str]] = set()
        for limit in chain([_FIRST_PAGE], repeat(_PAGE)):
            with self._translated("list", prefix):
                page = self._client.list_objects_v2(
                    Bucket=self.bucket,
                    Prefix=self.prefix + prefix,
                    MaxKeys=limit,
                    **start,
                )
                found = [
                    ObjectInfo(item["Key"].removeprefix(self.prefix), item["Size"], item["LastModified"])
                    for item in page.get("Contents", ())
                ]
                start = self._rest(page) if page["IsTruncated"] else {}
            yield from found
            if not start:
                return
            if not begun.isdisjoint(start.items()):
                raise self._not_s3()  # it would go round for ever
            begun.update(start.items())

    def put(self, key: str, body: Body) -> None:
        with self._translated("write", key):
            self._landed(self._client.put_object(**self._write(key, body)))

    def create(self, key: str, body: Body) -> None:
        self._conditional(
            key, lambda: self._client_once.put_object(**self._write(key, body), IfNoneMatch="*"), "create"
        )

    def replace(self, key: str, body: Body, *, token: str) -> None:
        self._conditional(
            key, lambda: self._client_once.put_object(**self._write(key, body), IfMatch=token), "replace"
        )

    def delete(self, key: str) -> None:
        with self._translated("delete", key):
            where = {"Bucket": self.bucket, "Key": self.prefix + key}
            send_until_known(lambda: self._client_once.delete_object(**where), _ATTEMPTS)

    def now(self) -> datetime:
        """Return the time that the server writes on its answers, to the second."""
        with self._translated("read the clock of", "the server"):
            answer = self._client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=1)
            stamp = answer["ResponseMetadata"]["HTTPHeaders"]["date"]
        try:
            return parsedate_to_datetime(stamp).astimezone(UTC)
        except ValueError as error:
            raise self._not_s3() from error

    def _rest(self, page: dict[str, Any]) -> dict[str, str]:
        """Return where a listing goes on after a page that is cut, which may be an empty one."""
        if page.get("NextContinuationToken"):
            return {"ContinuationToken": page["NextContinuationToken"]}
        if not page.get("Contents"):
            raise self._not_s3()
        return {"StartAfter": page["Contents"][-1]["Key"]}

    def _get(self, key: str, offset: int, length: int | None) -> tuple[bytes, str]:
        if length == 0:
            return b"", ""  # S3 has no empty range
        span = {} if not offset and length is None else {"Range": _span(offset, length)}
        for attempt in range(_ATTEMPTS):
            try:
                with self._translated("read", key):
                    answer = self._client.get_object(Bucket=self.bucket, Key=self.prefix + key, **span)
            except _BeyondEnd:
                return b"", ""
            try:
                with self._translated("read", key):
                    return answer["Body"].read(), answer["ETag"]
            except Unreachable:  # botocore repeats requests, but not a body that broke off
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the loop returns or raises")

    def _write(self, key: str, body: Body) -> dict[str, Any]:
        known = bytes.fromhex(body.sha256) if isinstance(body, HashedBytes) else b""
        checksum = base64.b64encode(known or hashlib.sha256(body).digest()).decode()
        return {"Bucket": self.bucket, "Key": self.prefix + key, "Body": body, "ChecksumSHA256": checksum}

    def _conditional(self, key: str, send: Callable[[], Any], intent: Literal["create", "replace"]) -> None:
        try:
            self._landed(send())
        except (boto.BotoCoreError, boto.ClientError) as error:
            if isinstance(error, boto.ClientError) and status_of(error) == 412:
                if intent == "create":
                    raise KeyExists(f"{key} already exists in {self.url}") from error
                raise TokenMismatch(f"{key} in {self.url} was changed by somebody else") from error
            raise translate_conditional(error, key, self.url, self._endpoint) from error
        except ResponseParserError as error:
            raise self._not_s3() from error

    def _landed(self, answer: dict[str, Any]) -> None:
        """Believe a write only if the answer has an ETag: a web server says 200 to anything."""
        if "ETag" not in answer:
            raise self._not_s3()

    @contextmanager
    def _translated(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except (boto.BotoCoreError, boto.ClientError, OSError) as error:
            if isinstance(error, boto.ClientError) and status_of(error) == 416:
                raise _BeyondEnd from error
            raise translate(error, verb, key, self.url, self._endpoint) from error
        except (KeyError, ResponseParserError) as error:
            raise self._not_s3() from error

    def _not_s3(self) -> ConfigurationError:
        return ConfigurationError(
            f"{self._endpoint} does not speak S3: its answer for {self.url} lacks what S3 always sends; "
            "check AWS_ENDPOINT_URL_S3"
        )


class _BeyondEnd(Exception):
    """A range starts behind the last byte (HTTP 416)."""


@cache
def _descriptions() -> Any:
    """Return what botocore knows of services: megabytes of JSON, read once and not for every backend."""
    return create_loader()


def _span(offset: int, length: int | None) -> str:
    return f"bytes={offset}-" if length is None else f"bytes={offset}-{offset + length - 1}"


def _config(attempts: int, s3: dict[str, Any]) -> Config:
    return Config(**_OPTIONS, retries={"mode": "standard", "total_max_attempts": attempts}, s3=s3)


def _is_foreign(client: Any) -> bool:
    """Tell whether the endpoint is not AWS: few such servers have a host name for every bucket."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return not host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _misconfigured(error: Exception, url: str) -> ConfigurationError:
    if isinstance(error, boto.BotoCoreError):
        translated = translate(error, "open", "the store", url, "the configured endpoint")
        if isinstance(translated, ConfigurationError):
            return translated
    return InvalidURL(f"cannot open {url}: AWS_ENDPOINT_URL_S3 or another AWS setting is not valid; fix it")
