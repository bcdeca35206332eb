"""Readers of CI jobs: GitHub's answers and CSV tables, and what they refuse or leave out."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.replay import files, jobs, table
from tasks.replay.jobs import BadJobs
from tasks.replay.params import ReplayParams
from tasks.replay.readers import read_jobs

REAL = Path(__file__).parents[4] / "shared" / "data" / "ci_jobs_bitcoin_core.csv.gz"
HEAD = "job_id,repository,job_name,status,head_sha,started_at,completed_at"


def answer(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "run_id": 5,
        "run_url": "https://api.github.com/repos/octo/repo/actions/runs/5",
        "head_sha": "c0ffee",
        "status": "completed",
        "conclusion": "success",
        "started_at": "2026-05-14T01:00:00Z",
        "completed_at": "2026-05-14T01:02:03Z",
        "name": "tests (3.12)",
        "workflow_name": "CI",
        **changes,
    }


def page(*numbers: int) -> dict[str, Any]:
    return {"total_count": 99, "jobs": [answer(number) for number in numbers]}


def read(path: Path, **params: Any) -> jobs.JobList:
    return read_jobs(path, ReplayParams.model_validate(params))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(page(1, 2, 3)),
        json.dumps(page(1)) + json.dumps(page(2, 3), indent=1),  # --paginate
        json.dumps([page(1, 2), page(3)]),  # --slurp
        "\n".join(json.dumps(answer(number)) for number in (1, 2, 3)),  # --jq '.jobs[]'
        json.dumps([answer(1), answer(2), answer(3)]),
        "\ufeff" + json.dumps(page(1, 2, 3)),
    ],
)
def test_every_form_of_githubs_answers_gives_the_same_jobs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(text, encoding="utf-8")
    found = read(path)
    assert [job.id for job in found.jobs] == ["1", "2", "3"]
    first = found.jobs[0]
    assert (first.repository, first.workflow, first.name) == ("octo/repo", "CI", "tests (3.12)")
    assert first.completed_us - first.started_us == 123_000_000


def test_pages_in_a_folder_plain_and_compressed_are_read_together_and_overlaps_counted(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.json").write_text(json.dumps(page(1, 2)))
    (tmp_path / "2.json.gz").write_bytes(gzip.compress(json.dumps(page(2, 3)).encode()))
    (tmp_path / "notes.txt").write_text("not jobs")
    found = read(tmp_path)
    assert [job.id for job in found.jobs] == ["1", "2", "3"]
    assert (found.rows, dict(found.excluded)) == (4, {"duplicate": 1})


def test_what_the_run_knows_is_used_where_it_was_added(tmp_path: Path) -> None:
    added = {"repository": {"full_name": "a/b"}, "workflow_id": 12, "path": ".github/x.yml", "event": "push"}
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([answer(1, **added)]))
    [job] = read(path).jobs
    assert (job.repository, job.workflow_id, job.workflow, job.event) == (
        "a/b",
        "12",
        ".github/x.yml",
        "push",
    )
    assert job.workflow_key == "12"


def test_githubs_conclusions_become_four_labels(tmp_path: Path) -> None:
    conclusions = [
        "success",
        "failure",
        "cancelled",
        "timed_out",
        "action_required",
        "neutral",
        "skipped",
        "stale",
    ]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([answer(n, conclusion=one) for n, one in enumerate(conclusions)]))
    labels = [job.label for job in read(path).jobs]
    assert labels == ["success", "failure", "cancelled", *["other"] * 5]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "in_progress", "conclusion": None}, "incomplete"),
        ({"conclusion": None}, "incomplete"),
        ({"completed_at": None}, "incomplete"),
        ({"conclusion": "splendid"}, "unknown conclusion"),
        ({"name": ""}, "missing field"),
        ({"run_url": "https://example.org"}, "missing field"),
        ({"id": None}, "missing field"),
        ({"started_at": "yesterday"}, "bad timestamp"),
        ({"started_at": "0001-01-01T00:00:00+14:00"}, "bad timestamp"),
        ({"completed_at": "2026-05-14T00:59:59Z"}, "ends before it starts"),
        ({"name": "x" * 301}, "field too long"),
        ({"id": 10**70}, "field too long"),
    ],
)
def test_a_row_that_is_no_job_is_left_out_and_counted(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([answer(1), answer(2, **changes)]))
    found = read(path)
    assert [job.id for job in found.jobs] == ["1"]
    assert dict(found.excluded) == {reason: 1}


def test_a_job_seen_running_and_completed_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(
        json.dumps([answer(1, status="in_progress", conclusion=None, completed_at=None), answer(1)])
    )
    assert len(read(path).jobs) == 1


def test_one_id_with_two_values_is_refused_with_both_places(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([answer(1), answer(1, conclusion="failure")]))
    with pytest.raises(BadJobs, match=r"job 1 stands twice with different values, in .* job 1 and .* job 2"):
        read(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"jobs": [', "no JSON at or after line 1"),
        (b"[" * 200_000, "nested too deeply|no JSON"),
        (b'{"total": 1}', "something else than jobs"),
        (b"[1, 2]", "something else than jobs"),
        (b'{"jobs": {"id": 1}}', "something else than jobs"),
        (b'[{"id": 1' + b"0" * 5000 + b"}]", "no JSON"),
        (b'{"jobs": "\xff\xfe"}', "not UTF-8"),
        (b'[{"id": "1\x00"}]', "jobs.json holds a NUL byte; repair it"),
        (json.dumps(answer(1)).encode("utf-16-le"), "NUL byte; repair it, or convert it to UTF-8"),
        (b"", "no completed job in 0 rows"),
    ],
)
def test_what_is_no_answer_of_github_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "jobs.json"
    path.write_bytes(content)
    with pytest.raises(BadJobs, match=says):
        read(path)


def csv(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_columns_and_labels_are_parameters(tmp_path: Path) -> None:
    path = csv(
        tmp_path / "t.csv",
        '9,o/r,"a, quoted ""name""",ok,beef,2026-05-14 01:00:00,2026-05-14T03:00:01+02:00,ci.yml',
        head="job,repository,job_name,status,head_sha,started_at,completed_at,flow",
    )
    [job] = read(path, columns={"id": "job", "workflow": "flow"}, labels={"ok": "success"}).jobs
    assert (job.name, job.label, job.workflow) == ('a, quoted "name"', "success", "ci.yml")
    assert job.completed_us - job.started_us == 1_000_000  # without a zone it is UTC


@pytest.mark.parametrize(
    ("rows", "head", "says"),
    [
        (
            ["1,o/r,n,COMPLETED,c"],
            HEAD.replace("head_sha", "sha"),
            r"no column 'head_sha' .*replay.columns.commit",
        ),
        (["1,2"], "one,two", r"no columns 'job_id', 'repository', .* but one, two; set replay.columns.id, "),
        (["1"], HEAD + ",status", "twice the column 'status'"),
        (
            ["", '1,"unclosed', "2,o/r"],
            HEAD,
            r"no CSV from line 3 on \(a quote that opens there is not",
        ),
        (['1,"' + "y" * 70_000, "z" * 70_000], HEAD, "no CSV from line 2 on .*not closed"),
        (['1,"a"b'], HEAD, r"no CSV from line 2 on \(.*expected after"),
        (["1,o/r,a\0b"], HEAD, "t.csv holds a NUL byte in line 2; repair it"),
        (['1,"x' + "y" * 140_000], HEAD, "longer than 131,072 bytes"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    tmp_path: Path, rows: list[str], head: str, says: str
) -> None:
    with pytest.raises(BadJobs, match=says):
        read(csv(tmp_path / "t.csv", *rows, head=head))


@pytest.mark.parametrize("name", ["t.csv", "t", "t.csv.gz"])
def test_an_empty_table_is_said_to_be_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
    with pytest.raises(BadJobs, match=f"{name} is empty; give a table of CI jobs whose first row names"):
        read(tmp_path / name)


@pytest.mark.parametrize("quoted", [False, True])
def test_a_mark_of_the_byte_order_is_no_part_of_the_first_column(tmp_path: Path, quoted: bool) -> None:
    head = HEAD.replace("job_id", '"job_id"') if quoted else HEAD
    path = csv(tmp_path / "t.csv", "1,o/r,n,COMPLETED,c,2026-05-14,2026-05-14", head="\ufeff" + head)
    assert [job.id for job in read(path).jobs] == ["1"]


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
def test_what_is_no_file_is_not_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "jobs.csv")
    with pytest.raises(BadJobs, match=r"jobs\.csv is a (pipe|device); give a file of CI jobs"):
        read(tmp_path / "jobs.csv")


def test_short_rows_lack_fields_and_empty_lines_are_nothing(tmp_path: Path) -> None:
    good = "1,o/r,n,COMPLETED,c,2026-05-14T01:00:00Z,2026-05-14T01:00:00Z"
    found = read(csv(tmp_path / "t.csv", good, "", "2,o/r,n,COMPLETED"))
    assert (len(found.jobs), dict(found.excluded)) == (1, {"incomplete": 1})


def test_a_quoted_field_over_endless_lines_ends_at_the_limit(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv", '1,"' + "line\n" * 50_000)
    with pytest.raises(BadJobs, match="no CSV"):
        read(path)


def test_compression_stops_at_the_limit_however_small_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.json"
    path.write_bytes(gzip.compress(b" " * (3 << 20)))
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    with pytest.raises(BadJobs, match="larger than 1 MiB decompressed"):
        read(path)


def test_damaged_compression_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(page(1, 2, 3)).encode() * 50)
    for name, data in (("cut.json", whole[:-20]), ("flipped.json", whole[:30] + b"\x00\x01" + whole[32:])):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(BadJobs, match=f"{name} is damaged|no JSON|not UTF-8"):
            read(path)


def test_more_rows_than_a_replay_reads_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_JOBS", 2)
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(page(1, 2, 3)))
    with pytest.raises(BadJobs, match="beyond the 2 jobs"):
        read(path)


def test_a_missing_path_and_an_empty_folder_say_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(BadJobs, match="does not exist; give a file"):
        read(tmp_path / "absent")
    with pytest.raises(BadJobs, match=r"holds no \.json"):
        read(tmp_path)


def test_the_kind_of_a_file_without_an_ending_is_seen_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("\n " + json.dumps(page(1)))
    assert len(read(tmp_path / "answers").jobs) == 1
    csv(tmp_path / "table", "1,o/r,n,COMPLETED,c,2026-05-14T01:00:00Z,2026-05-14T01:00:00Z")
    assert len(read(tmp_path / "table").jobs) == 1


def test_lines_are_bounded_while_they_are_read() -> None:
    assert table._LONGEST_LINE < files.MOST_BYTES


@pytest.mark.skipif(not REAL.is_file(), reason="the shared data are not beside this checkout")
def test_a_month_of_real_jobs_is_read_with_its_bad_rows_counted() -> None:
    found = read(REAL)
    assert (found.rows, len(found.jobs), dict(found.excluded)) == (
        10_201,
        10_151,
        {"ends before it starts": 50},
    )
    assert sum(job.started_us == job.completed_us for job in found.jobs) == 351
