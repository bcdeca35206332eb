"""One computation per GPU: the limit of a real Prefect API, and the locks of devices among real processes.

No GPU is needed: limit and lock do not look at what a device is.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from flows.engine import bind, flow
from flows.errors import SettingsError
from flows.settings import Settings, load_settings
from flows.workers import gpu
from flows.workers.gpu import LIMIT, claimed, computing_device, provide_limit, slot
from flows.workers.runner import spread
from tests.e2e.workplace import ROOT


@pytest.fixture(autouse=True)
def no_limit(prefect_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("CELLAR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    with get_client(sync_client=True) as client:
        try:
            client.delete_global_concurrency_limit_by_name(LIMIT)
        except ObjectNotFound:
            return


def limit() -> tuple[int, int]:
    """The limit, and its slots in use."""
    with get_client(sync_client=True) as client:
        found = client.read_global_concurrency_limit_by_name(LIMIT)
    return found.limit, found.active_slots


@pytest.mark.parametrize(("gpus", "together"), [(1, 1), (2, 2)])
def test_no_more_computations_run_together_than_there_are_gpus(gpus: int, together: int) -> None:
    settings = load_settings(gpus=gpus, workers=2)
    provide_limit(settings, owner=False)
    lock, running, seen = threading.Lock(), set[int](), []
    met = threading.Barrier(together)

    def step(settings: Settings, number: int) -> int:
        with slot():
            with lock:
                running.add(number)
                seen.append(len(running))
            met.wait(60)  # with two slots both have to be inside at once
            with lock:
                running.remove(number)
        return number

    work = bind(step, name="step")
    assert flow(lambda: spread(work, settings, [[0], [1]], "steps"), name="computes")() == [0, 1]

    assert max(seen) == together
    assert limit() == (gpus, 0)


def test_without_a_limit_nothing_computes_on_a_gpu() -> None:
    with pytest.raises(SettingsError, match=r"no limit named 'gpu'.*CELLAR_GPUS") as refused, slot():
        pytest.fail("a missing limit let a computation pass")
    assert refused.value.exit_code == 3


def test_the_limit_follows_the_settings_and_only_the_owner_of_an_api_clears_it() -> None:
    provide_limit(load_settings(), owner=True)
    with pytest.raises(ObjectNotFound):  # on the CPU there is nothing to limit
        limit()

    provide_limit(load_settings(gpus=2), owner=False)
    with get_client(sync_client=True) as client:
        client.increment_concurrency_slots([LIMIT], 1, "concurrency")  # as a killed process leaves it
    provide_limit(load_settings(gpus=3), owner=False)
    assert limit() == (3, 1)
    provide_limit(load_settings(), owner=False)
    assert limit() == (3, 1)
    provide_limit(load_settings(gpus=3), owner=True)
    assert limit() == (3, 0)


def test_the_cpu_is_nobody_s_alone() -> None:
    with computing_device(load_settings()) as one, computing_device(load_settings()) as other:
        assert (one, other) == ("cpu", "cpu")


@pytest.mark.parametrize("what", ["open to others", "a link", "a file", "somebody else's"])
def test_locks_lie_only_where_nobody_else_can_write(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"cellar-devices-{os.getuid()}"
    if what == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif what == "a file":
        folder.touch(mode=0o600)
    else:
        folder.mkdir(mode=0o700)
    if what == "open to others":
        folder.chmod(0o770)
    if what == "somebody else's":
        other = os.getuid() + 1
        folder.rename(tmp_path / f"cellar-devices-{other}")
        monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(SettingsError, match=r"cellar-devices-.*TMPDIR"), claimed({"one": "cuda:0"}):
        pytest.fail("a device was locked there")


HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from flows.workers.gpu import claimed
with claimed({"one": "cuda:0", "two": "cuda:1"}) as device:
    print(device, flush=True)
    sys.stdin.read()
"""


def test_every_process_has_a_device_to_itself_until_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_POLL_S", 0.01)
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    held = {process.stdout.readline().strip(): process for process in holders if process.stdout}
    assert held.keys() == {"cuda:0", "cuda:1"}
    got: list[str] = []

    def take() -> None:
        with claimed({"one": "cuda:0", "two": "cuda:1"}) as device:
            got.append(device)

    waiting = threading.Thread(target=take)
    waiting.start()
    assert got == []
    held["cuda:1"].send_signal(signal.SIGKILL)
    waiting.join(30)
    assert got == ["cuda:1"]
    held["cuda:0"].communicate()
    held["cuda:1"].communicate()
