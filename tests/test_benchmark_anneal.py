"""The benchmark of alphas: both loops compute the same, so that their speeds may be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.anneal import main
from tests.tiny_host import write_tiny_host


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """The benchmark sets how many threads it takes."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_measures_a_folder_and_keeps_the_report(tmp_path: Path) -> None:
    host = write_tiny_host(tmp_path / "host", layers=6)
    out = tmp_path / "anneal.json"
    small = ["--tokens", "24", "--scored", "8", "--probes", "3", "--runs", "1", "--out", str(out)]
    code = main(["--host", str(host), *small])
    report = json.loads(out.read_text())
    held = {one["name"]: one for one in report["section"]["requirements"]}
    assert held["losses of a probe apart, float32"]["verdict"] == "pass"
    assert report["layers"] == 2
    assert "population / plain loop, both float32" in out.with_suffix(".md").read_text()
    assert code == int(any(one["verdict"] == "FAIL" for one in held.values()))


def test_a_folder_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--host", str(tmp_path)])
    assert "holds no model" in capsys.readouterr().err


def test_a_folder_in_place_of_the_report_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    host = write_tiny_host(tmp_path / "host")
    with pytest.raises(SystemExit, match="is a folder; give the name of a file"):
        main(["--host", str(host), "--out", str(tmp_path)])
