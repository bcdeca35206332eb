"""`cellar larc replay` on a tiny host: from a table of jobs to figures, and what it refuses at once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Store
from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]
SMALL = """
host: {name: tiny, dtype: float32}
replay: {name: mine, training_jobs: 12, audit_jobs: 8, resamples: 100, fit: {jobs: 6}}
"""


@pytest.fixture
def prepared(cellar: Cellar, workplace: Path) -> Path:
    write_tiny_host(workplace / "tiny")
    (workplace / "params.yaml").write_text(SMALL)
    assert cellar("host", "add", "tiny", "tiny")[0] == 0
    labels = ["COMPLETED", "FAILED", "ABORTED", "skipped"]
    rows = ["job_id,repository,job_name,status,head_sha,started_at,completed_at"]
    for number in range(24):
        start, end = f"2026-05-14T01:{number:02}:00Z", f"2026-05-14T01:{number + number % 3:02}:30Z"
        rows.append(f"{number},o/r,job{number % 3},{labels[number % 4]},c{number // 6},{start},{end}")
    rows.append("99,o/r,job1,COMPLETED,c1,2026-05-14T01:05:00Z,2026-05-14T01:04:00Z")
    (workplace / "jobs.csv").write_text("\n".join(rows) + "\n")
    return workplace


def planned(cellar: Cellar, jobs: str, *options: str) -> dict[str, list[str]]:
    """The steps of a plan that would run, with their reasons."""
    code, out, err = cellar("plan", "larc-replay", "--jobs", jobs, *options, "--json")
    assert code == 0, err
    return {step["name"]: step["reasons"] for step in json.loads(out)["steps"] if step["state"] != "done"}


@pytest.mark.slow
def test_a_table_of_jobs_becomes_one_table_of_all_paths(cellar: Cellar, prepared: Path) -> None:
    before = planned(cellar, "jobs.csv")
    code, out, err = cellar("larc", "replay", "--jobs", "jobs.csv")

    assert code == 0, err
    assert before == {
        "jobs": ["never built"],
        "start": ["never built"],
        "task fit": ["its input will change: jobs, start"],
        "replay": ["its input will change: task fit"],
    }
    assert planned(cellar, "jobs.csv") == {}
    assert planned(cellar, "jobs.csv", "--set", "replay.audit_jobs=7") == {"replay": ["never evaluated so"]}
    assert planned(cellar, "jobs.csv", "--set", "replay.training_jobs=9")["task fit"] == [
        "other parameters or files than before"
    ]
    table = (prepared / "jobs.csv").read_text().splitlines(keepends=True)
    (prepared / "fewer.csv").write_text("".join(table[:-1]))
    assert planned(cellar, "fewer.csv")["jobs"] == ["other parameters or files than before"]
    found = json.loads((prepared / "results" / "replay.json").read_text())
    assert len(found["replay"]) == 13
    assert (prepared / "results" / "replay.html").is_file()
    lines = out.splitlines()
    assert lines[0].startswith("training: 11 jobs of 2 commits of 1 repositories")
    assert "1 ends before it starts" in lines[2]
    paths = [line.split("  ")[0] for line in lines]
    assert paths.index("reset (P0 M0)") < paths.index("controller") < paths.index("HEDGE5")
    tip = Store.open("file:build/store").tip()
    again = json.loads(cellar("larc", "replay", "--jobs", "jobs.csv", "--json")[1])
    assert (again["evaluation"], Store.open("file:build/store").tip()) == (found["evaluation"], tip)
    assert cellar("eval", "show", "results/replay.json")[1].splitlines()[0] == lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--jobs", "absent.csv"), 2, "absent.csv does not exist; give a file of CI jobs"),
        (("--jobs", "jobs.csv", "--set", "replay.columns.id=nope"), 2, "no column 'nope'"),
        (("--jobs", "jobs.csv", "--set", "host.name=other"), 4, "has no host other"),
        (("--jobs", "jobs.csv", "--set", 'replay.paths=["hedge5"]'), 2, "the path hedge5 needs controller"),
    ],
)
def test_what_cannot_be_replayed_is_said_before_anything_is_started(
    cellar: Cellar, prepared: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    found, _, err = cellar("larc", "replay", *arguments)
    assert found == code, err
    assert sentence in err
    assert err.count("\n") == 1
