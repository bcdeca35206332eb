"""The seconds of a stage are those of the run that did its work."""

from pathlib import Path

import pytest

from flows.pins import Pin
from flows.timing import Spent, remembered, timed, work_seconds
from store import Element, Store

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


def test_work_that_commits_is_remembered_with_its_documents_and_work_that_was_found_is_not(
    tmp_path: Path,
) -> None:
    store, folder = Store.create(f"file:{tmp_path}/store"), tmp_path / "work"

    with timed(folder, store, "memory") as work:
        store.publish([Element("memory", "a", b"a", media="text/plain")], message="m")
        work.outcome, work.documents = ["memory/a"], 3
    with timed(folder, store, "memory") as work:
        work.outcome, work.documents = ["memory/b"], 3
    with timed(folder, store, "memory") as work:
        store.publish([Element("memory", "c", b"c", media="text/plain")], message="m")
        work.documents = 0
    with timed(folder, store, "snapshot"):
        store.publish([Element("memory", "d", b"d", media="text/plain")], message="m")

    found = remembered(folder)
    assert [run.documents for run in found["memory"]] == [3]
    assert [run.documents for run in found["snapshot"]] == [None]


def test_only_the_newest_runs_of_a_stage_are_remembered(tmp_path: Path) -> None:
    work_seconds(tmp_path, "core", ONE, 5.0, found=False)
    for number in range(150):
        pins = [Pin(stage="codec", figures={"loss": float(number)})]
        work_seconds(tmp_path, "codec", pins, float(number), found=False)

    found = remembered(tmp_path)
    assert found["core"] == [Spent(5.0)]
    assert [run.seconds for run in found["codec"]] == [float(number) for number in range(50, 150)]
