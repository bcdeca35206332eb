"""The seconds of a stage are those of the run that did its work."""

from pathlib import Path

import pytest

from flows.pins import Pin
from flows.timing import work_seconds

ONE = [Pin(stage="codec", figures={"loss": 1.0})]
OTHER = [Pin(stage="codec", figures={"loss": 2.0})]


def test_who_finds_the_work_done_gets_the_time_of_who_did_it(tmp_path: Path) -> None:
    folder = tmp_path / "work"

    assert work_seconds(folder, "codec", ONE, 0.2, found=True) is None
    assert work_seconds(folder, "codec", ONE, 75.0, found=False) == 75.0
    assert work_seconds(folder, "codec", OTHER, 50.0, found=False) == 50.0

    assert work_seconds(folder, "codec", ONE, 0.2, found=True) == 75.0
    assert work_seconds(folder, "core", ONE, 0.2, found=True) is None
    assert [path.name for path in folder.iterdir()] == ["seconds.json"]


def test_work_that_is_done_again_counts_anew(tmp_path: Path) -> None:
    work_seconds(tmp_path, "codec", ONE, 75.0, found=False)
    work_seconds(tmp_path, "codec", ONE, 70.0, found=False)

    assert work_seconds(tmp_path, "codec", ONE, 0.2, found=True) == 70.0


@pytest.mark.parametrize("content", ["", "[]", "{", '{"codec": "fast"}'])
def test_a_damaged_record_only_loses_times(tmp_path: Path, content: str) -> None:
    (tmp_path / "seconds.json").write_text(content)

    assert work_seconds(tmp_path, "codec", ONE, 0.2, found=True) is None
    assert work_seconds(tmp_path, "codec", ONE, 75.0, found=False) == 75.0
