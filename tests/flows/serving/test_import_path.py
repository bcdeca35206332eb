"""Folders and files beside a run hide nothing that is installed, and its user's modules are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.errors import ScheduleError
from flows.serving.deployments import load_deployments
from flows.serving.import_path import import_variables
from tests.e2e.workplace import ROOT

LOOK = """
import random, store, tasks.assembly, flows.scheduled, mine
print(random.random() < 1, store.__file__, flows.__file__, mine.VALUE)
"""


def test_what_lies_in_the_working_folder_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("store", "flows", "tasks"):
        (tmp_path / name).mkdir()
    (tmp_path / "random.py").write_text("raise ImportError('of the user')")
    (tmp_path / "mine.py").write_text("VALUE = 'found'")
    monkeypatch.chdir(tmp_path)
    elsewhere = [entry for entry in sys.path if Path(entry).resolve() != ROOT]  # found by an import hook
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *elsewhere])

    looked = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, **import_variables()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert looked.returncode == 0, looked.stderr
    there = [str(ROOT / package / "__init__.py") for package in ("store", "flows")]
    assert looked.stdout.split() == ["True", *there, "found"]


def test_a_checkout_is_found_from_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert import_variables()["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)


@pytest.mark.parametrize("name", ["tasks.py", "store/__init__.py"])
def test_a_module_that_would_be_taken_for_ours_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScheduleError, match=f"{name} hides the package .* rename it"):
        load_deployments(ROOT / "prefect.yaml")
