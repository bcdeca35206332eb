"""One process serves a folder, says so, and is forgotten when it dies, however that happens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from flows.errors import AlreadyServed
from flows.serving.lock import serve_lock, serving

HOLD = """
import subprocess, sys
from pathlib import Path
from flows.serving.lock import serve_lock
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
with serve_lock(Path(sys.argv[1])) as lock:
    lock.announce("http://127.0.0.1:1/api", child.pid)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


def test_who_serves_is_found_while_it_serves(tmp_path: Path) -> None:
    assert serving(tmp_path / "home") is None
    with serve_lock(tmp_path / "home") as lock:
        lock.announce("http://127.0.0.1:1/api", None)
        found = serving(tmp_path / "home")
        assert found is not None
        assert (found.pid, found.url) == (os.getpid(), "http://127.0.0.1:1/api")
    assert serving(tmp_path / "home") is None


def test_a_second_one_is_told_who_serves(tmp_path: Path) -> None:
    with serve_lock(tmp_path) as lock:
        lock.announce("http://127.0.0.1:1/api", None)
        with (
            pytest.raises(AlreadyServed, match=rf"process {os.getpid()} serves it at http://127.0.0.1:1/api"),
            serve_lock(tmp_path),
        ):
            pass
    with serve_lock(tmp_path):
        assert serving(tmp_path) is None


def test_what_a_killed_one_left_running_is_ended_by_the_next(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    orphan = psutil.Process(int(holder.stdout.readline()))
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert serving(tmp_path) is None
    assert orphan.is_running()
    with serve_lock(tmp_path):
        psutil.wait_procs([orphan], timeout=10)
        assert not orphan.is_running()
