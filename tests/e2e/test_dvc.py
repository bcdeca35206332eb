"""The chain as a DVC pipeline: a clean clone is built once, and a second run has nothing to do."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flows.params import Params
from flows.pins import COMMANDS
from tests.e2e.forking_program import forking_program
from tests.e2e.workplace import FOREIGN, ROOT, Workplace

PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def test_every_stage_runs_its_own_command_and_leaves_its_pin() -> None:
    assert list(PIPELINE) == [*COMMANDS, "verify"]
    for stage in COMMANDS:
        definition = PIPELINE[stage]
        assert definition["cmd"].startswith(COMMANDS[stage])
        assert {f"pins/{stage}.json": {"cache": False}} in definition["outs"]
        assert set(definition.get("params", [])) <= set(Params.model_fields)


def test_the_last_stage_looks_at_what_every_pin_names_each_time() -> None:
    assert PIPELINE["verify"]["always_changed"]
    assert PIPELINE["verify"]["deps"] == [f"pins/{stage}.json" for stage in COMMANDS]


def clone(place: Workplace, folder: Path) -> None:
    """A repository with this pipeline, the texts and parameters of a tiny chain, and nothing built."""
    for name in ("dvc.yaml", ".dvc", ".dvcignore", ".gitignore", "tasks"):
        source = ROOT / name
        skip = shutil.ignore_patterns("__pycache__", "tmp", "cache")
        (
            shutil.copytree(source, folder / name, ignore=skip)
            if source.is_dir()
            else shutil.copy(source, folder)
        )
    shutil.copytree(place.folder / "texts", folder / "texts")
    shutil.copy(place.folder / "params.yaml", folder)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=folder, check=True)


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the program `cellar`, which on Linux begins without waiting for its imports."""
    folder = tmp_path_factory.mktemp("programs")
    if sys.platform == "linux":
        with forking_program(folder / "cellar"):
            yield folder
        return
    shim = folder / "cellar"
    shim.write_text(f"#!{sys.executable}\nimport sys\nfrom flows.cli import main\nsys.exit(main())\n")
    shim.chmod(0o755)
    yield folder


@pytest.mark.slow
def test_a_clean_clone_is_built_once(
    finished: Workplace, tmp_path: Path, programs: Path, with_server: dict[str, str]
) -> None:
    clone(finished, tmp_path)
    shutil.copytree(finished.path, tmp_path / "build" / "store")  # so that stages find what they would make
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment = {
        **inherited,
        **finished.environment,
        **with_server,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CELLAR_THREADS": "1",
    }

    def dvc(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dvc", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    def repro() -> str:
        done = dvc("repro")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert repro().count("Running stage") == len(PIPELINE)
    pin = json.loads((tmp_path / "pins" / "snapshot.json").read_text())
    assert pin["snapshot"] == finished.pin("snapshot").snapshot
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())
    assert metrics["published"] + metrics["rejected"] == metrics["documents"]
    again = repro()
    assert re.findall(r"Running stage '(\w+)'", again) == ["verify"]
    assert "everything that they name is there and intact" in again
    commit = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "built"]
    for command in (["git", "add", "."], commit):
        subprocess.run(command, cwd=tmp_path, check=True)
    metrics["nll"]["retrieved"] += 0.5
    (tmp_path / "results" / "metrics.json").write_text(json.dumps(metrics))
    [changed] = [line for line in dvc("metrics", "diff").stdout.splitlines() if "nll" in line]
    assert changed.split()[1] == "nll.retrieved"
    assert float(changed.split()[-1]) == pytest.approx(0.5, abs=1e-4)
    drawn = dvc("plots", "show", "--out", "plots")
    assert drawn.returncode == 0, drawn.stderr
    assert "raw_text" in (tmp_path / "plots" / "index.html").read_text()

    packs = (tmp_path / "build" / "store").glob("packs/*/*")
    [largest] = sorted(packs, key=lambda path: path.stat().st_size)[-1:]
    flipped = bytearray(largest.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    for damaged in (flipped, None):
        largest.unlink()
        if damaged is not None:
            largest.write_bytes(damaged)
        broken = dvc("repro")
        assert broken.returncode != 0
        assert "does not hold as it was published" in broken.stderr
