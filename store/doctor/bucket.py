"""What only an S3 server can do right or wrong: upload checksums, multipart uploads, versions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self

from botocore import exceptions as boto

from store.backend.s3 import S3Backend
from store.backend.s3_errors import endpoint_name, status_of, translate
from store.doctor.ground import Ground
from store.doctor.report import Check
from store.errors import CellarError

_PART_BYTES = 5 * 1024**2
"""The least that S3 takes as a part that is not the last one."""


def bucket_checks(backend: S3Backend, ground: Ground) -> Iterator[Check]:
    """Yield the checks that need S3 itself; none of them can make a storage unfit."""
    trials: dict[str, Callable[[S3Backend, Ground], tuple[bool, str]]] = {
        "checksum": _refuses_damaged_uploads,
        "multipart": _joins_parts,
        "multipart-leftovers": _has_no_unfinished_uploads,
        "versions": _keeps_no_versions,
    }
    for name, trial in trials.items():
        try:
            good, sentence = trial(backend, ground)
        except (boto.BotoCoreError, boto.ClientError) as error:
            good, sentence = False, f"not checked: {_translated(error, backend, name)}"
        yield Check(name, "ok" if good else "warn", sentence)


def _refuses_damaged_uploads(backend: S3Backend, ground: Ground) -> tuple[bool, str]:
    key, other = ground.key("checksum"), base64.b64encode(hashlib.sha256(b"other bytes").digest()).decode()
    try:
        backend.client.put_object(
            Bucket=backend.bucket, Key=backend.prefix + key, Body=ground.body(), ChecksumSHA256=other
        )
    except boto.ClientError as error:
        if status_of(error) != 400:
            raise
        if backend.info(key) is not None:
            return False, "an upload that fails its ChecksumSHA256 is refused and stored all the same"
        return True, "an upload that fails its ChecksumSHA256 is refused"
    return False, (
        "an upload that fails its ChecksumSHA256 is accepted; damage on the way to the server will be "
        "noticed by readers and `cellar verify --full` only"
    )


def _joins_parts(backend: S3Backend, ground: Ground) -> tuple[bool, str]:
    key = ground.key("multipart")
    parts = [b"a" * _PART_BYTES, ground.body()]
    with _upload(backend, key) as upload:
        upload.send(parts)
        upload.complete()
    if backend.read(key) != b"".join(parts):
        return False, "a multipart upload does not read back as it was sent"
    with _upload(backend, ground.key("multipart-aborted")) as upload:
        upload.send(parts[1:])
    if backend.info(ground.key("multipart-aborted")) is not None:
        return False, "a multipart upload that was aborted left an object"
    return True, "two parts make one object, and an aborted upload makes none"


class _upload:  # noqa: N801 - a context manager that reads as a verb
    """A multipart upload that is aborted unless it was completed."""

    def __init__(self, backend: S3Backend, key: str) -> None:
        self._client = backend.client
        self._where = {"Bucket": backend.bucket, "Key": backend.prefix + key}
        self._id = self._client.create_multipart_upload(**self._where)["UploadId"]
        self._parts: list[dict[str, Any]] = []
        self._complete = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._complete:
            self._client.abort_multipart_upload(**self._where, UploadId=self._id)

    def send(self, bodies: list[bytes]) -> None:
        for number, body in enumerate(bodies, start=1):
            answer = self._client.upload_part(**self._where, UploadId=self._id, PartNumber=number, Body=body)
            self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    def complete(self) -> None:
        self._client.complete_multipart_upload(
            **self._where, UploadId=self._id, MultipartUpload={"Parts": self._parts}
        )
        self._complete = True


def _has_no_unfinished_uploads(backend: S3Backend, ground: Ground) -> tuple[bool, str]:
    pages = backend.client.get_paginator("list_multipart_uploads").paginate(
        Bucket=backend.bucket, Prefix=backend.prefix
    )
    uploads = [upload for page in pages for upload in page.get("Uploads", ())]
    if not uploads:
        return True, "no unfinished multipart upload takes up space"
    oldest = min(upload["Initiated"] for upload in uploads)
    return False, (
        f"{len(uploads)} unfinished multipart uploads take up space that no listing shows, the oldest since "
        f"{oldest:%Y-%m-%d}; abort them, or let a lifecycle rule of the bucket do it"
    )


def _keeps_no_versions(backend: S3Backend, ground: Ground) -> tuple[bool, str]:
    status = ""
    with suppress(KeyError):
        status = backend.client.get_bucket_versioning(Bucket=backend.bucket)["Status"]
    if status == "Enabled":
        return False, (
            "the bucket keeps old versions, so deleting frees no space; give it a lifecycle rule that "
            "expires noncurrent versions"
        )
    return True, "the bucket keeps no old versions"


def _translated(error: Exception, backend: S3Backend, name: str) -> CellarError:
    endpoint = endpoint_name(backend.client.meta.endpoint_url)
    return translate(error, "check", name, backend.url, endpoint)
