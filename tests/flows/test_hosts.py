"""The host of a flow is opened once for all that follows, and never shared nor kept when it changed."""

from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from flows.hosts import computing_host
from flows.params import Params
from flows.settings import Settings, load_settings
from store import Store
from tasks.errors import BadHost, HostChanged
from tasks.hosts import publish_host
from tests.tiny_host import write_tiny_host

HOST = Params.model_validate({"host": {"name": "tiny", "dtype": "float32"}}).host


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_host(tmp_path / "hosts" / "tiny")


@pytest.fixture
def store(tmp_path: Path, folder: Path) -> Store:
    store = Store.create(f"file:{tmp_path / 'store'}")
    publish_host(store, folder, "tiny")
    return store


@pytest.fixture
def settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("CELLAR_HOSTS", str(folder.parent))
    monkeypatch.setenv("CELLAR_DEVICE", "cpu")
    return load_settings()


def test_computations_that_follow_each_other_open_their_host_once(store: Store, settings: Settings) -> None:
    with computing_host(settings, store, HOST) as host:
        first = host.model
        with computing_host(settings, store, HOST) as beside:  # it may have shadows attached
            assert beside.model is not first
    with computing_host(settings, store, HOST) as host:
        assert host.model is first
    with computing_host(settings, store, HOST.model_copy(update={"dtype": "bfloat16"})) as host:
        assert host.model is not first


def test_one_host_is_kept_at_most(store: Store, settings: Settings, folder: Path) -> None:
    publish_host(store, write_tiny_host(folder.parent / "other", seed=1), "other")
    other = HOST.model_copy(update={"name": "other"})
    with computing_host(settings, store, HOST) as host:
        first = host.model
        with computing_host(settings, store, other) as beside:
            second = beside.model
    with computing_host(settings, store, other) as host:
        assert host.model is not second
    with computing_host(settings, store, HOST) as host:
        assert host.model is not first


def test_files_that_no_host_has_are_left_alone(store: Store, settings: Settings, folder: Path) -> None:
    (folder / ".#config.json").symlink_to("me@a-host.123")  # an editor's lock
    with computing_host(settings, store, HOST) as host:
        assert host.model is not None
    (folder / "tokenizer.json").unlink()
    with computing_host(settings, store, HOST) as host, pytest.raises(BadHost, match=r"no tokenizer\.json"):
        host.encode("a text")


def test_a_host_that_an_error_left_is_opened_anew(store: Store, settings: Settings) -> None:
    computing = computing_host(settings, store, HOST)
    first = computing.__enter__().model
    error = KeyboardInterrupt()
    assert not computing.__exit__(KeyboardInterrupt, error, None)
    with computing_host(settings, store, HOST) as host:
        assert host.model is not first


def test_a_kept_host_is_not_used_once_a_file_changed(store: Store, settings: Settings, folder: Path) -> None:
    with computing_host(settings, store, HOST) as host:
        first = host.model
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with computing_host(settings, store, HOST) as host:
        assert host.model is not first
    tensors["model.norm.weight"][0] += 1
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(HostChanged), computing_host(settings, store, HOST) as host:
        _ = host.model
