"""The benchmark of large stores on a small one: it grows a copy, asks the same tasks, leaves elements out."""

import json
import subprocess
import sys

import pytest

from tests.e2e.workplace import ROOT, TINY, Workplace


@pytest.mark.nightly
@pytest.mark.slow
def test_the_same_tasks_are_answered_from_a_store_that_grows(finished: Workplace) -> None:
    before = finished.store.tip()
    own = len(finished.store.snapshot(finished.pin("snapshot").snapshot or "").rows("memory"))
    options = ["--store", str(finished.path), "--pins", str(finished.path.parent / "pins")]
    options += ["--params", str(TINY), "--elements", str(own + 25), "--queries", "4", "--left-out", "3"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.large_store",
            *options,
            "--json",
            "--out",
            f"{finished.folder}/l.json",
        ],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["found"]
    small, large = report["stores"]
    assert (small["elements"], large["elements"]) == (own, own + 25)
    assert small["answers"]["tasks"] == large["answers"]["tasks"] > 0
    assert large["answers"]["coverage"] <= large["answers"]["candidate_recall"]
    assert report["localised"]["left_out"] == 3
    assert report["localised"]["others_moved"] == 0
    assert finished.store.tip() == before
