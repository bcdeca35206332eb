"""One measurement in a process of its own, so that its memory and its warm-up are its own.

A measurement is a function `task(**arguments) -> dict` of one of the modules in `_MODULES`. The parent calls
`measure`; the child prints what the function returns, and the peak of its memory, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_MODULES = (
    "benchmarks.addressing_runs",
    "benchmarks.audit",
    "benchmarks.builds",
    "benchmarks.contenders",
    "benchmarks.large_store_runs",
    "benchmarks.peers",
    "benchmarks.updates",
)


def measure(task: str, *, environment: dict[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Run one task in a child; its result, with `rss` (MiB) and `process_s`, the life of the child."""
    command = [sys.executable, "-m", "benchmarks.child", task, json.dumps(arguments)]
    began = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    process_s = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{task} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**result, "process_s": process_s}


def _peak_mib() -> int:
    """The peak of this process's resident memory; `ru_maxrss` would count the parent's before `exec` too."""
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def main() -> None:
    """Run the task that the command line names."""
    module, _, name = sys.argv[1].partition(":")
    if module not in _MODULES:
        raise SystemExit(f"no such module of measurements: {module}")
    result = getattr(import_module(module), name)(**json.loads(sys.argv[2]))
    print(json.dumps({**result, "rss": _peak_mib()}))


if __name__ == "__main__":
    main()
