"""Fixtures that several rooms share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tasks  # noqa: F401 - before any test loads torch, so that its threads sleep while they wait
from tests.seaweedfs import S3Server, running_server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Return a real S3 server that lives as long as the test session."""
    with running_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server
