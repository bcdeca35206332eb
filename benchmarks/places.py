"""Where a benchmark keeps what it writes: a server of its own or a folder; a fresh corner for each run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

import boto3
from botocore.config import Config

from tests.seaweedfs import S3Server, running_server

_VOLUMES = 400
_VOLUME_MB = 1024


class Place(Protocol):
    """A storage with any number of empty corners; `environment` is what a process needs to reach it."""

    environment: dict[str, str]

    def fresh(self) -> str:
        """Return the URL of an empty corner."""
        ...

    def drop(self, url: str) -> None:
        """Give a corner up; its space may be given back later."""
        ...


class BucketPlace:
    """A bucket per corner: removing a bucket gives its space back at once."""

    def __init__(self, server: S3Server) -> None:
        self.environment = server.environment()
        self._numbers = count(1)
        self._client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    def fresh(self) -> str:
        bucket = f"benchmark-{next(self._numbers)}"
        self._client.create_bucket(Bucket=bucket)
        return f"s3://{bucket}/corner"

    def drop(self, url: str) -> None:
        self._client.delete_bucket(Bucket=url.split("/")[2])


class FolderPlace:
    """A folder per corner."""

    def __init__(self, root: Path) -> None:
        self.environment: dict[str, str] = {}
        self._root = root
        self._numbers = count(1)

    def fresh(self) -> str:
        return str(self._root / f"corner-{next(self._numbers)}")

    def drop(self, url: str) -> None:
        """Leave it to the end: deleting files slows down making others; see `benchmarks.dvc_commands`."""


@contextmanager
def open_place(backend: str, root: Path) -> Iterator[Place]:
    """Start a server with its data below `root`, or use the folder itself."""
    if backend == "file":
        yield FolderPlace(root)
        return
    folder = root / "server"
    folder.mkdir()
    with running_server(folder, volumes=_VOLUMES, volume_mb=_VOLUME_MB) as server:
        yield BucketPlace(server)
