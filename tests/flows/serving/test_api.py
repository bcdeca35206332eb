"""The embedded Prefect server ends with its command, however that ends."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.workplace import ROOT

HOLD = """
import sys
sys.path.remove("")
from pathlib import Path
from flows.serving.api import prefect_api
with prefect_api(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def answers(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@pytest.fixture
def held(tmp_path: Path, new_prefect: Path) -> "subprocess.Popen[str]":
    """A process that holds a server open until its standard input ends; its folder has odd files."""
    (tmp_path / "random.py").write_text("raise ImportError('of the user')")
    shutil.copytree(new_prefect, tmp_path, dirs_exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment | {"PREFECT_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
    )


def url_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(url: str) -> bool:
    """Whether the server stops answering within a minute."""
    deadline = time.monotonic() + 60
    while answers(url):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)  # polling another process: there is nothing to wait on
    return True


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(None, marks=pytest.mark.nightly, id="at its end"),  # tests/e2e looks for those left
        pytest.param(signal.SIGKILL, id="by kill -9"),
    ],
)
def test_no_server_outlives_its_command(held: "subprocess.Popen[str]", end: signal.Signals | None) -> None:
    url = url_of(held)
    assert answers(url)
    if end is None:
        assert held.stdin is not None
        held.stdin.close()
    else:
        held.send_signal(end)
    held.wait(timeout=30)
    assert gone(url)


def test_a_configured_api_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_server: str
) -> None:
    from flows.serving.api import prefect_api

    with prefect_api(tmp_path / "unused") as url:
        assert url == prefect_server
    assert not (tmp_path / "unused").exists()
