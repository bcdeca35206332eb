"""Every behaviour of the store is tested on a folder and on a real S3 server, by the fixtures here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if (
        mount is None
        or os.geteuid() != 0
        or subprocess.run(command, check=False, capture_output=True).returncode
    ):
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
