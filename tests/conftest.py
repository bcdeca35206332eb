"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

import tasks  # noqa: F401 - before any test loads torch, so that its threads sleep while they wait
from tests.seaweedfs import S3Server, running_server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script
    # Programs that tests start would inherit that, and Ctrl-C could not end them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "suite", deadline=None, max_examples=50, derandomize=True
)  # how long an example takes depends on who else is working
settings.register_profile("nightly", deadline=None, max_examples=1000, derandomize=False, print_blob=True)
settings.load_profile("suite")


_FIRST = (
    "e2e/test_interrupt.py",
    "store/test_repair.py",
    "store/test_kill.py",
    "flows/workers/test_runner.py",
    "e2e/test_served_faults.py",
    "e2e/test_schedules.py",
    "e2e/test_crashes.py",
    "e2e/test_dvc.py",
)
"""Files that take longest begin first, so that none is left alone at the end of a run in several processes.

The first one makes the chain that many wait for; those of the store need nothing of it.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {Path(__file__).parent / name: number for number, name in enumerate(_FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Return a real S3 server that lives as long as the test session."""
    with running_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def new_prefect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the first start of a Prefect server leaves in its folder; tests start with a copy of it.

    Making its database takes longer than all else that a start does. The first process that asks makes it.
    """
    from flows.serving.api_process import ApiProcess

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = shared / "new-prefect"
    with FileLock(shared / "new-prefect.lock"):
        if not made.exists():
            folder = shared / "making-prefect"
            server = ApiProcess(folder)
            server.start()
            server.stop()
            with closing(sqlite3.connect(folder / "prefect.db")) as database:
                database.execute("pragma wal_checkpoint(truncate)")
            folder.rename(made)
    return made


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory, new_prefect: Path) -> Iterator[str]:
    """Return the URL of a real Prefect API that flows of this process use: starting one takes seconds."""
    from flows.serving.api import prefect_api

    folder = shutil.copytree(new_prefect, tmp_path_factory.mktemp("prefect"), dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect-home")))
        patch.delenv("PREFECT_API_URL", raising=False)
        with prefect_api(folder) as url:
            yield url
