"""A tiny host of six layers with a shadow on three of them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from store import Store
from tasks.hosts import Host, open_host, publish_host
from tasks.shadows import Shadow, new_shadow
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


@pytest.fixture
def shadow(host: Host) -> Shadow:
    zero = new_shadow(host, (1, 3, 5), document="ab" * 32, seeds={})
    draws = torch.Generator().manual_seed(3)
    return replace(zero, deltas=tuple(0.1 * torch.randn(d.shape, generator=draws) for d in zero.deltas))
