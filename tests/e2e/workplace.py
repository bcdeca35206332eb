"""A folder where a test runs the command line in processes of its own, as a user does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from flows.pins import Pin, Stage, read_pin
from store import Commit, Store
from store.format import log_key, snapshot_key
from tests.e2e.forked import forks

ROOT = Path(__file__).parents[2]
TINY = Path(__file__).with_name("tiny.yaml")
PROGRAM = (sys.executable, "-P", "-c", "import sys; from flows.cli import main; sys.exit(main())")
FOREIGN = ("CELLAR_", "PREFECT_", "AWS_")
"""Variables of whoever runs the tests that must not reach a command."""

TOKENIZED, TRAINED, REMEMBERED = 2, 3, 5
"""Commits in the log after the tokenizer, after the codec, and after the memories were pinned."""

_LIMIT_S = 180.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Workplace:
    """A working folder with the texts, the parameters, and the store and pins that a chain left there."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"file:{self.folder / 'build' / 'demo' / 'store'}"

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self.folder / "build" / "demo" / "store"

    @property
    def store(self) -> Store:
        return Store.open(self.url)

    @property
    def commits(self) -> list[Commit]:
        return list(self.store.log())

    @property
    def work(self) -> Path:
        """The scratch folder."""
        return self.folder / "build" / "demo" / "work"

    @property
    def settings(self) -> dict[str, str]:
        """Variables that name the store, the pins and the scratch folder."""
        return {
            "CELLAR_STORE": self.url,
            "CELLAR_PINS": str(self.folder / "build" / "demo" / "pins"),
            "CELLAR_WORK_DIR": str(self.work),
            "CELLAR_THREADS": "1",
        }

    def start(self, *arguments: str, log: Path | None = None, **environment: str) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, as a shell does; `log` takes what it prints."""
        output: IO[bytes] | int = subprocess.PIPE if log is None else log.open("ab")
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self.folder,
            env=self._variables(environment),
            text=True,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def cellar(self, *arguments: str, **environment: str) -> Ended:
        """Run a command to its end, on Linux without waiting for its imports."""
        if sys.platform != "linux":
            return ended(self.start(*arguments, **environment))
        variables = self._variables(environment)
        return Ended(*forks().run(arguments, self.folder, variables, limit_s=_LIMIT_S))

    def _variables(self, more: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        return {**inherited, "PYTHONPATH": str(ROOT), **self.settings, **self.environment, **more}

    def rewind(self, commits: int) -> None:
        """Take the store back to its first commits; later packs stay, but nothing names them."""
        for commit in self.commits[commits:]:
            (self.path / log_key(commit.sequence)).unlink()
            (self.path / snapshot_key(commit.snapshot)).unlink(missing_ok=True)
        for checkpoint in (self.path / "log").glob("checkpoint-*"):  # of the log as it was
            checkpoint.unlink()
        for folder in ("builds", "refs"):
            shutil.rmtree(self.path / folder, ignore_errors=True)

    def pin(self, stage: Stage) -> Pin:
        """What a stage left for the next one."""
        return read_pin(self.folder / "build" / "demo" / "pins", stage)

    def parts(self) -> list[Path]:
        """The finished units of memory builds."""
        return sorted(self.path.glob("builds/memory-*/parts/*"))


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for a command."""
    try:
        out, err = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Ended(process.returncode, out, err)


def wait_for(event: Callable[[], object], process: subprocess.Popen[str], *, every: float = 0.005) -> None:
    """Return as soon as `event` is true, while the command is at work; looks every so many seconds."""
    deadline = time.monotonic() + _LIMIT_S
    while not event():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the event did not come"
        time.sleep(every)  # polling another process: there is nothing to wait on


def servers_of(workplace: Workplace) -> list[int]:
    """Processes whose environment names the workplace's Prefect database: its embedded server."""
    database = str(workplace.work / "prefect").encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                environment = (process / "environ").read_bytes()
            except OSError:  # it ended meanwhile, or is another user's
                continue
            if database in environment:
                found.append(int(process.name))
    return found


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[None]:
    """A file system mounted at a folder; skips the test where that is not allowed."""
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if subprocess.run([mount, *arguments, str(folder)], capture_output=True, check=False).returncode:
        pytest.skip(f"this machine does not let root mount {' '.join(arguments)}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
