"""Fixtures of rooms that work on a host: a tiny one of six layers, opened from a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import Store
from tasks.hosts import Host, open_host, publish_host
from tests.tiny_host import write_tiny_host


@pytest.fixture(scope="session")
def host_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_host(tmp_path_factory.mktemp("hosts") / "tiny", layers=6)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open_or_create(f"file:{tmp_path / 'store'}")


@pytest.fixture
def host(store: Store, host_folder: Path) -> Host:
    return open_host(store, host_folder.parent, publish_host(store, host_folder, "tiny"), dtype="float32")
