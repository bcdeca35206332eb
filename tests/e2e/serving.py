"""What tests look at where `cellar serve` works: its processes, its runs, and what they hold."""

import json
import sqlite3
import subprocess
from contextlib import suppress

import psutil

from tests.e2e.workplace import Workplace

QUICK = {"PREFECT_RUNNER_POLL_FREQUENCY": "1"}
"""Variables of a server that looks for runs every second."""


def processes_of(workplace: Workplace) -> list[int]:
    """Every process that works in the workplace."""
    found = []
    for process in psutil.process_iter():
        try:
            working_here = process.cwd() == str(workplace.folder)
            if working_here and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def server_of(workplace: Workplace) -> int | None:
    """The process of the API, as the serving process notes it; None while it serves nothing."""
    try:
        note = json.loads((workplace.work / "prefect" / "serve.json").read_text())
    except FileNotFoundError:
        return None
    return int(note["server"]["number"])


def run_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The processes of runs that a serving one has started."""
    found = []
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.NoSuchProcess):  # or it ended and waits to be noticed, which is a kind of that
            if "prefect.engine" in child.cmdline():
                found.append(child)
    return found


def slots_taken(workplace: Workplace) -> int:
    with sqlite3.connect(workplace.work / "prefect" / "prefect.db") as database:
        [(taken,)] = database.execute("select coalesce(sum(active_slots), 0) from concurrency_limit_v2")
    return int(taken)


def runs(workplace: Workplace, *options: str) -> list[dict[str, str]]:
    listed = workplace.cellar("runs", "--json", "--limit", "0", *options)
    assert listed.code == 0, listed.err
    return list(json.loads(listed.out))


def served_states(workplace: Workplace, deployment: str = "%") -> list[str]:
    """States of the runs of deployments, all or one of them, straight from the database of the server."""
    with sqlite3.connect(workplace.work / "prefect" / "prefect.db") as database:
        found = database.execute(
            "select flow_run.state_name from flow_run join deployment on deployment.id = deployment_id "
            "where deployment.name like ?",
            [deployment],
        )
        return [name for (name,) in found]


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
