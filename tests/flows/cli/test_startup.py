"""A command starts at once: what takes long to load is loaded by the commands that need it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tasks.errors import UnknownHost
from tests.e2e.workplace import ROOT

COMPUTING = {
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "faiss",
    "prefect",
    "boto3",
    "botocore",
    "distributed",
    "matplotlib",
}
"""What no command needs that only reads a store in a folder, or is refused."""
STORING = {"numpy", "pyarrow", "cryptography"}
SHOW = """
import json, sys
from flows.cli import main
codes = [main(arguments) for arguments in json.loads(sys.argv[1])]
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([codes, loaded]), file=sys.stderr)
"""
RUNS, CPU_S = 5, 0.6
"""Seconds of processor time, the least of some runs; on an idle machine it is about half of that."""
PROGRAM = {"format": "cellar.skill/1", "arity": 1, "division": "floor", "step_limit": 9}


def loaded_by(folder: Path, *commands: list[str]) -> tuple[list[int], set[str], str]:
    """Exit codes of commands that one new process runs, the libraries it has loaded then, and its stdout."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CELLAR_STORE": f"file:{folder / 'store'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    codes, loaded = json.loads(done.stderr.splitlines()[-1])
    return codes, set(loaded), done.stdout


def test_help_loads_nothing_that_takes_long_and_takes_no_time(tmp_path: Path) -> None:
    spent = []
    for _ in range(RUNS):
        before = os.times()
        codes, loaded, shown = loaded_by(tmp_path, ["--help"], ["corpus", "build", "--help"])
        after = os.times()
        spent.append(sum(after[2:4]) - sum(before[2:4]))
        assert codes == [0, 0]
        assert shown.count("Exit codes: 0 done") == 2
        assert loaded & {*COMPUTING, *STORING, "pydantic", "subprocess"} == set()
    assert min(spent) < CPU_S, spent


def test_a_wrong_parameter_or_path_is_refused_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    codes, loaded, _ = loaded_by(
        tmp_path,
        ["demo", "--set", "nonsense=1"],
        ["codec", "train", "--set", "codec.steps=many"],
        ["memory", "build", "--params", "absent.yaml"],
        ["anneal", "write", "host", "--set", "shadow=1"],
    )

    assert codes == [2] * 4
    assert "pydantic" in loaded
    assert loaded & {*COMPUTING, *STORING} == set()


def test_commands_on_a_store_load_nothing_that_computes(tmp_path: Path) -> None:
    code = [["argument", 0], ["negate"], ["return"]]
    (tmp_path / "negate.json").write_text(json.dumps({**PROGRAM, "code": code}))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("Where there is one text there is one memory of it. " * 9)

    codes, loaded, shown = loaded_by(
        tmp_path,
        ["init"],
        ["skill", "publish", "negate", "negate.json"],
        ["skill", "run", "negate", "twelve"],
        ["skill", "show", "negate"],
        ["snapshot", "pin", "skill/negate", "--tag", "v1"],
        ["snapshot", "show", "v1"],
        ["snapshot", "ls"],
        ["lineage", "skill/negate"],
        ["log"],
        ["verify", "--full"],
        ["gc"],
        ["host", "show"],
        ["plan", "--set", "corpus.reader=folder", "--set", "corpus.path=texts"],
        ["larc", "train"],
        ["anneal", "write"],
    )

    assert codes == [*[0] * 13, UnknownHost.exit_code, UnknownHost.exit_code]
    assert "-12" in shown
    assert "pyarrow" in loaded
    assert loaded & COMPUTING == set()


def test_what_can_be_scheduled_is_known_without_what_computes(tmp_path: Path) -> None:
    """`cellar serve` stays a small process: the runs that it starts load torch."""
    look = "import sys, flows.scheduled, flows.scheduled_hosts; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"torch", "transformers", "faiss"} & set(done.stdout.split()) == set()
