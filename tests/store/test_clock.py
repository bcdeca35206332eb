"""Processes whose clocks are years wrong work on a store as others do: only the storage's clock counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.gc import collect
from tests.store.killed_writer import work
from tests.store.memory import MemoryBackend

ROOT = Path(__file__).parents[2]
MINUTE = 1 / 365.25 / 24 / 60


def run(years: float, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.store.shifted_clock", str(years), url, *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def check_done(done: subprocess.CompletedProcess[str], url: str) -> None:
    """Check that a process did the whole job, and that its collector saw nothing as old as it thinks."""
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    store = Store.open(url)
    assert said["id"] == work(MemoryBackend())
    assert store.snapshot("done").id == store.snapshot("main").id == said["id"]
    assert [commit.elements for commit in store.log()] == [1, 24, 0]
    assert store.verify(full=True).findings == ()
    nothing = {"packs": 0, "snapshots": 0, "files": 0, "bytes": 0}
    assert [said["gc"][name] for name in ("condemned", "collected", "leftovers")] == [nothing] * 3
    now = store.backend.now()
    for hold in store.holds():
        assert timedelta(minutes=50) < hold.expires - now <= timedelta(minutes=60)
    assert collect(store).roots["holds"] == len(store.holds())


@pytest.mark.parametrize("years", [10.0, -10.0])
def test_a_job_begun_and_ended_in_other_decades_is_one_job(tmp_path: Path, years: float) -> None:
    url = str(tmp_path / "store")

    assert run(years, url, "17").returncode == -signal.SIGKILL
    done = run(-years, url)

    check_done(done, url)


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
def test_on_a_bucket_a_clock_may_be_some_minutes_wrong_and_not_years(store_url: str) -> None:
    """S3 signs the time into every request and refuses what is older than a quarter of an hour."""
    refused = run(10, store_url)
    assert refused.returncode == 1
    assert "this machine's clock and that of" in refused.stderr

    for minutes in (10, -10):
        check_done(run(minutes * MINUTE, store_url), store_url)
