"""A device that this machine lacks is named as a matter of configuration; commits tell of their origin."""

from pathlib import Path

import pytest
import torch

from flows.errors import SettingsError
from flows.origin import code
from flows.place import device_of, open_store, prepare_threads
from flows.settings import load_settings
from store import Store


def test_a_flow_records_its_settings_the_machine_and_the_user(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "store"))

    run = open_store(load_settings(store=str(tmp_path / "store"))).run

    assert run.keys() == {"flow", "flow_run", "settings", "host", "user", *code()}
    assert run["user"]


def test_the_cpu_is_always_there() -> None:
    assert device_of(load_settings(device="cpu")) == "cpu"


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_here_is_refused(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(SettingsError, match=f"CELLAR_DEVICE is '{device}'") as refused:
        device_of(load_settings(device=device))
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(("threads", "sharing", "given"), [(3, 2, 3), (0, 10_000, 1)])
def test_computations_that_share_a_machine_share_its_cores(threads: int, sharing: int, given: int) -> None:
    prepare_threads(load_settings(threads=0))
    usual = torch.get_num_threads()

    prepare_threads(load_settings(threads=threads), sharing=sharing)
    assert torch.get_num_threads() == given

    prepare_threads(load_settings(threads=0))
    assert torch.get_num_threads() == usual
