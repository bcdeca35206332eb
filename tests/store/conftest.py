"""Every behaviour of the store is tested on a folder and on a real S3 server, by the fixtures here."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import Store
from store.backend import Backend, open_backend
from tests.seaweedfs import S3Server


@pytest.fixture(params=["file", "s3"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of an empty place, on each kind of storage in turn."""
    if request.param == "file":
        return f"file:{tmp_path / 'store'}"
    server: S3Server = request.getfixturevalue("s3_server")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server.url()


@pytest.fixture
def backend(store_url: str) -> Backend:
    """Return an empty backend of each kind."""
    return open_backend(store_url)


@pytest.fixture
def store(store_url: str) -> Store:
    """Return an empty store on each kind of storage."""
    return Store.create(store_url)
