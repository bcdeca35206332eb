"""The chain as a DVC pipeline: a clean clone is built once, and a second run has nothing to do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flows.params import Params
from flows.pins import COMMANDS
from tests.e2e.workplace import FOREIGN, ROOT, Workplace

PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def test_every_stage_runs_its_own_command_and_leaves_its_pin() -> None:
    assert list(PIPELINE) == list(COMMANDS)
    for stage, definition in PIPELINE.items():
        assert definition["cmd"].startswith(COMMANDS[stage])
        assert {f"pins/{stage}.json": {"cache": False}} in definition["outs"]
        assert set(definition.get("params", [])) <= set(Params.model_fields)


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


@pytest.mark.slow
def test_a_clean_clone_is_built_once(
    finished: Workplace, tmp_path: Path, with_server: dict[str, str]
) -> None:
    clone(finished, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    shim = programs / "cellar"
    shim.write_text(f"#!{sys.executable}\nimport sys\nfrom flows.cli import main\nsys.exit(main())\n")
    shim.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment = {
        **inherited,
        **finished.environment,
        **with_server,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CELLAR_THREADS": "1",
    }

    def repro() -> str:
        command = [sys.executable, "-m", "dvc", "repro"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert repro().count("Running stage") == len(PIPELINE)
    pin = json.loads((tmp_path / "pins" / "snapshot.json").read_text())
    assert pin["snapshot"] == finished.pin("snapshot").snapshot
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())
    assert metrics["published"] + metrics["rejected"] == metrics["documents"]
    again = repro()
    assert "Running stage" not in again
    assert "Data and pipelines are up to date." in again
