"""DVC as its documentation sets it up: a local remote, its own choice of links, its own number of jobs.

Nothing is deleted between measurements: for some minutes after many files were deleted, ext4 takes up to
ten times as long to make a new one, and DVC makes two or three for every element.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.payloads import payload

DATA = "data"
_GIT = ("git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")


class DvcProject:
    """A git repository with DVC, a folder of elements, and a local remote beside it."""

    def __init__(self, root: Path) -> None:
        self.work = root / "project"
        self._root = root
        self._clones = 0
        self._environment = {
            **os.environ,
            "DVC_NO_ANALYTICS": "true",
            "DVC_SITE_CACHE_DIR": str(root / "site"),
            "DVC_GLOBAL_CONFIG_DIR": str(root / "global"),
            "DVC_SYSTEM_CONFIG_DIR": str(root / "system"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def prepare(self, count: int) -> None:
        """Make the project and write the elements as files of its workspace; not measured."""
        folder = self.work / DATA
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number:07d}.bin").write_bytes(payload(number))
        self._run(["git", "init", "--quiet"])
        self._run(["dvc", "init", "--quiet"])
        self._run(["dvc", "config", "core.check_update", "false"])
        self._run(["dvc", "remote", "add", "--quiet", "--default", "beside", str(self._root / "remote")])

    def add_and_push(self) -> float:
        """`dvc add` and `dvc push`; the seconds they take."""
        return self._timed(["dvc", "add", "--quiet", DATA], ["dvc", "push", "--quiet"])

    def pull(self) -> float:
        """`dvc pull` in a fresh clone of the project; the seconds it takes."""
        clone = self._root / f"clone-{self._clones}"
        self._clones += 1
        self._run(["git", "add", "--all"])
        self._run([*_GIT, "commit", "--quiet", "--allow-empty", "--message", "data"])
        self._run(["git", "clone", "--quiet", str(self.work), str(clone)])
        os.sync()
        seconds = self._timed(["dvc", "pull", "--quiet"], where=clone)
        if not any((clone / DATA).iterdir()):
            raise RuntimeError("dvc pull brought nothing")
        return seconds

    def _timed(self, *commands: Sequence[str], where: Path | None = None) -> float:
        began = time.perf_counter()
        for command in commands:
            self._run(command, where)
        return time.perf_counter() - began

    def _run(self, command: Sequence[str], where: Path | None = None) -> None:
        done = subprocess.run(
            command,
            cwd=where or self.work,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
