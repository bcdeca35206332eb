"""`cellar --help` answers at once: what takes long to load is loaded by the commands that need it."""

import os
import subprocess
import sys

from tests.e2e.workplace import ROOT

HEAVY = {
    "torch",
    "prefect",
    "numpy",
    "pyarrow",
    "boto3",
    "botocore",
    "pydantic",
    "distributed",
    "matplotlib",
    "subprocess",
}
SHOW = """
import sys
from flows.cli import main
code = main(["--help"])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""
RUNS, CPU_S = 5, 0.6
"""Seconds of processor time, the least of some runs; on an idle machine it is about half of that."""


def test_help_loads_nothing_that_takes_long_and_takes_no_time() -> None:
    spent = []
    for _ in range(RUNS):
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-c", SHOW],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        after = os.times()
        spent.append(sum(after[2:4]) - sum(before[2:4]))
        assert "cellar" in done.stdout
        assert HEAVY & set(done.stderr.split()) == set()
    assert min(spent) < CPU_S, spent
