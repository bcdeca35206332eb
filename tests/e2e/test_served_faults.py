"""What is said of served runs that cannot even start, and of those that a stop ends: one word, or none."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import Store
from tests.e2e.serving import QUICK, processes_of, runs, served_states
from tests.e2e.workplace import Workplace, wait_for
from tests.flows.notices.receiver import receiving

pytestmark = pytest.mark.slow

DEPLOYMENTS = """
deployments:
- {name: broken, entrypoint: broken.run}
- {name: loading, entrypoint: loading.run}
- {name: working, entrypoint: working.run}
"""
FLOW = """
import os, signal
from pathlib import Path
from flows.engine import flow

IS_RUN = "PREFECT__FLOW_RUN_ID" in os.environ

def _run() -> None:
    Path("working").touch()
    signal.pause()

run = flow(_run, name=__name__)
"""
BROKEN = "if IS_RUN:\n    raise ImportError('a part of it is gone')\n"
LOADING = "if IS_RUN:\n    Path('loading').touch()\n    signal.pause()\n"


@pytest.fixture
def workplace(tmp_path: Path, new_prefect: Path) -> Iterator[Workplace]:
    """An empty store, flows of a user's own, and folders and files called as modules of others are."""
    (tmp_path / "deployments.yaml").write_text(DEPLOYMENTS)
    for name, extra in (("broken", BROKEN), ("loading", LOADING), ("working", "")):
        (tmp_path / f"{name}.py").write_text(FLOW + extra)
    for name in ("store", "flows", "tasks"):
        (tmp_path / name).mkdir()
    (tmp_path / "random.py").write_text("raise ImportError('of the user')")
    made = Workplace(tmp_path, {"PREFECT_HOME": str(tmp_path / "home")})
    Store.create(made.url)
    shutil.copytree(new_prefect, made.work / "prefect")
    yield made
    for pid in processes_of(made):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "stopped", [["working"], pytest.param(["loading", "working"], marks=pytest.mark.nightly)], ids=len
)
def test_a_run_that_cannot_be_loaded_is_told_of_once_and_a_stop_is_no_news(
    workplace: Workplace, stopped: list[str]
) -> None:
    now = [word for name in ("broken", *stopped) for word in ("--now", name)]
    with receiving() as receiver:
        process = workplace.start(
            *("serve", "--port", "0", "--file", "deployments.yaml", *now),
            log=workplace.folder / "serve.log",
            **{"CELLAR_NOTIFY_URL": receiver.url, **QUICK},
        )
        for name in stopped:
            wait_for((workplace.folder / name).exists, process, every=0.2)
        wait_for(lambda: "Crashed" in served_states(workplace) and receiver.messages, process, every=0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=90) == 0
        told = list(receiver.messages)

    assert processes_of(workplace) == []
    listed = {run["deployment"]: run for run in runs(workplace)}
    assert listed.keys() == {"broken", *stopped}
    broken = listed["broken"]
    assert (broken["state"], broken["again"]) == ("Crashed", None)
    assert broken["reason"] == "its process ended with exit code 1: ImportError: a part of it is gone"
    for name in stopped:
        assert (listed[name]["state"], listed[name]["reason"]) == ("Cancelled", "Runner is shutting down.")
    assert [(one["flow"], one["run"], one["reason"]) for one in told] == [
        ("broken", broken["id"], broken["reason"])
    ]
    assert told[0]["store"] == workplace.url
