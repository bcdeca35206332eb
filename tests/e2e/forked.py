"""Commands in processes that are forked from one which has imported what they use.

A command of its own spends some seconds of a processor on imports before it works for less than one. What a
test has to signal, or kill, is started as a user starts it; see `Workplace.start`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_IMPORTED = (
    "faiss",
    "matplotlib.figure",
    "flows.audit_evaluation",
    "flows.build_skills",
    "flows.demo",
    "flows.evaluate_addressing",
    "flows.evaluate_reading",
    "flows.evaluate_replacement",
    "flows.evaluate_skills",
    "flows.evaluate_snapshot",
    "flows.report",
    "flows.serving.api",
    "flows.serving.recovery",
    "flows.update_memories",
    "tasks.assembly.step",
    "tasks.codec.step",
    "tasks.corpus.step",
    "tasks.evaluation.step",
    "tasks.memory.step",
    "tasks.package",
    "tasks.retrieval.step",
)

_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"}
"""Variables by which the libraries start no threads when they are imported: a fork would lack them."""


class Forks:
    """A process that waits, and forks a command whenever it is asked for one."""

    def __init__(self) -> None:
        foreign = ("CELLAR_", "PREFECT_", "AWS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from tests.e2e.forked import serve; serve()"],
            env={**inherited, **_NO_THREADS, "PYTHONPATH": str(ROOT)},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *, limit_s: float
    ) -> tuple[int, str, str]:
        """Run a command to its end: its code, and what it printed.

        Raises:
            subprocess.TimeoutExpired: it did not end in time, and was killed.
        """
        late = threading.Event()
        with tempfile.TemporaryDirectory() as scratch:
            out, err = Path(scratch) / "out", Path(scratch) / "err"
            asked = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
            number = int(self._ask(json.dumps({**asked, "out": str(out), "err": str(err)})))

            def kill() -> None:
                late.set()
                os.killpg(number, signal.SIGKILL)

            timer = threading.Timer(limit_s, kill)
            timer.start()
            try:
                code = int(self._ask(""))
            finally:
                timer.cancel()
            if late.is_set():
                raise subprocess.TimeoutExpired(list(arguments), limit_s, out.read_text(), err.read_text())
            return code, out.read_text(), err.read_text()

    def _ask(self, line: str) -> str:
        """Send a line, and wait for one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that forks commands ended; it said above why"
        return answer

    def close(self) -> None:
        """End the process; it would also end with this one."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@cache
def forks() -> Forks:
    """That of this process, made when a test first asks."""
    made = Forks()
    atexit.register(made.close)
    return made


def serve() -> None:
    """Import everything; then fork for each line that asks, and say its number and, asked again, its end."""
    before = dict(os.environ)
    for module in _IMPORTED:
        importlib.import_module(module)
    added = {name: value for name, value in os.environ.items() if before.get(name) != value}
    gc.freeze()
    while line := sys.stdin.readline():
        assert len(list(Path("/proc/self/task").iterdir())) == 1, "a fork would leave threads behind"
        number = os.fork()
        if number == 0:
            sys.exit(_command(json.loads(line), added))
        print(number, flush=True)  # noqa: T201 - the answer
        sys.stdin.readline()
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


def _command(asked: dict[str, Any], added: dict[str, str]) -> int:
    """Become what a shell would have started; `added` are variables that imports set."""
    os.setsid()
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for descriptor, path, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, asked["out"], writing),
        (2, asked["err"], writing),
    ):
        file = os.open(path, how)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update({**added, **asked["environment"]})
    os.chdir(asked["folder"])
    sys.argv = ["-c", *asked["arguments"]]

    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging

    from flows.cli import main

    # Prefect reads these when it is imported, after the command line has chosen the level of its logs.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO" if "--debug" in sys.argv else "CRITICAL")
    refresh_global_settings_context()
    setup_logging()
    return main()
