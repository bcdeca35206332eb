"""A tiny host of six layers, and a text it can learn."""

from pathlib import Path

import pytest

from store import Store
from tasks.hosts import Host, open_host, publish_host
from tests.tiny_host import write_tiny_host

TEXT = "".join(f"the {n}th cask is cool and dark; keep it shut, then count to {n + 3}.\n" for n in range(900))


@pytest.fixture(scope="session")
def host_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_host(tmp_path_factory.mktemp("hosts") / "tiny", layers=6)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open_or_create(f"file:{tmp_path / 'store'}")


@pytest.fixture
def host(store: Store, host_folder: Path) -> Host:
    return open_host(store, host_folder.parent, publish_host(store, host_folder, "tiny"), dtype="float32")


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "cellar.txt"
    path.write_text(TEXT)
    return path
