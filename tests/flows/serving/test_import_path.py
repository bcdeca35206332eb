"""Folders and files beside a run hide nothing that is installed, and its user's modules are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.serving.import_path import import_variables
from tests.e2e.workplace import ROOT

LOOK = """
import random, store, tasks.assembly, flows.scheduled, mine
print(random.random() < 1, store.__file__, flows.__file__, mine.VALUE)
"""


def test_what_lies_in_the_working_folder_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("store", "flows"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('of the user')")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "random.py").write_text("raise ImportError('of the user')")
    (tmp_path / "mine.py").write_text("VALUE = 'found'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])

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
