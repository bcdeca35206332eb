"""The benchmark of the store measures what it says, holds it against thresholds, and can be continued."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.child import measure
from benchmarks.figures import Section, markdown
from benchmarks.payloads import PAYLOAD_BYTES, elements, payload

ROOT = Path(__file__).parents[1]


def test_payloads_are_all_different_and_do_not_compress() -> None:
    import zlib

    some = [payload(number) for number in (0, 1, 2, 52_808)]

    assert len({*some}) == 4
    assert all(len(zlib.compress(one)) > PAYLOAD_BYTES == len(one) for one in some)
    assert len({element.version for element in elements(50)}) == 50


def test_what_is_published_in_one_process_is_streamed_in_another(tmp_path: Path) -> None:
    url = str(tmp_path / "store")

    written = measure("benchmarks.contenders:publish", url=url, count=20)
    pinned = measure("benchmarks.contenders:pin", url=url)
    streamed = measure("benchmarks.contenders:stream", url=url, snapshot=pinned["snapshot"])
    keys = [f"packs/{digest[:2]}/{digest}" for digest in pinned["packs"]]
    raw = measure("benchmarks.peers:read_files", url=url, keys=keys)

    assert streamed["count"] == 20
    assert streamed["bytes"] == 20 * PAYLOAD_BYTES
    assert all(result["seconds"] > 0 and result["rss"] > 10 for result in (written, streamed, raw))


def test_a_task_that_fails_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="there is no store"):
        measure("benchmarks.contenders:pin", url=str(tmp_path))


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"least": 4}, "pass"),
        ({"least": 6}, "FAIL"),
        ({"most": 4}, "FAIL"),
        ({"most": 5}, "pass"),
        ({}, "shown only"),
    ],
)
def test_a_ratio_is_held_against_its_threshold(bounds: dict[str, Any], verdict: str) -> None:
    section = Section("s")
    for value in (1.0, 9.0, 5.0):
        section.figure("f", "elements/s").add(value, 100)

    section.require("f / one", section.figure("f", "").median, **bounds)

    shown = "\n".join(markdown(section.to_dict()))
    assert section.requirements[0].verdict == verdict
    assert "| f | 5 elements/s | 1 9 5 | 100 MiB |" in shown
    assert verdict in shown


def test_sections_that_were_measured_are_not_measured_again(tmp_path: Path) -> None:
    section = Section("kept")
    section.figure("f", "s").add(1.0)
    section.require("f", 2.0, most=1.0)
    kept = {**section.to_dict(), "at": "then", "took_s": 1.0, "load": [0.1, 0.2], "new_file_us": 20}
    names = ("publish", "read", "commit", "lookup", "scaling")
    report = {
        "settings": {"backend": "file", "n": 5000, "full": False},
        "sections": dict.fromkeys(names, kept),
    }
    out = tmp_path / "report.json"
    out.write_text(json.dumps(report))

    command = [sys.executable, "-m", "benchmarks.store", "--backend", "file", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stderr  # a threshold is not met
    assert done.stdout.count("### kept") == 5
    assert json.loads(out.read_text())["sections"] == report["sections"]
    assert out.with_suffix(".md").read_text() in done.stdout


def test_costs_on_paper_follow_from_what_was_measured() -> None:
    from benchmarks.cluster_cost import Plan, figures, measured

    def run(unit: int) -> dict[str, Any]:
        units = 96 // unit
        shards = {"PutObject": 2 * units + 3 * 4, "HeadObject": units + 5 * 4}
        commit = {"GetObject": 2 * units + 7}
        per_document = dict.fromkeys(("pack_bytes", "part_bytes", "index_bytes", "result_bytes"), 96 * 100)
        counts = {"cpu_s": 192.0, "documents": 96, "shards": 4, "units": units}
        return {**counts, "requests_of_shards": shards, "requests_of_commit": commit, **per_document}

    one = measured(run(4), run(32))

    assert (one.core_s, one.pack_bytes, one.unit_writes, one.unit_reads) == (2.0, 100.0, 2.0, 1.0)
    assert (one.shard_writes, one.shard_reads, one.commit_unit_reads, one.commit_rest) == (3.0, 5.0, 2.0, 7.0)
    plan = Plan(1.0, unit=10, shard=100, per_build=500, core_hour=1, gb_month=1, writes_1000=1, reads_1000=1)
    found = figures(1000, plan, one)
    assert (found["builds"], found["builds side by side"]) == (2, 1)
    assert found["write requests"] == 100 * 2 + 10 * 3 + 2 * 7
    assert found["read requests"] == 100 * 3 + 10 * 5
    assert found["$ of cores"] == pytest.approx(2000 / 3600)


def test_an_audit_of_synthetic_documents_finds_their_copies_in_time_that_grows_with_the_text() -> None:
    from benchmarks.audit import audit

    small, large = audit(400), audit(1600)

    assert large["tokens"] > 3 * small["tokens"]
    assert small["found"] == small["planted"] >= 8
    assert large["found"] == large["planted"] >= 32
    assert large["near"] >= large["found"]
    assert large["candidates"] < 16 * large["documents"]
    assert large["seconds"] < 60


@pytest.mark.nightly
def test_orchestration_is_measured_on_builds_that_agree(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    small = ["--documents", "20", "--shards", "4", "--codec-steps", "2", "--runs", "1", "--out", str(out)]

    command = [sys.executable, "-m", "benchmarks.orchestration", *small, "--work", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode in (0, 1), done.stderr  # so small a build meets no threshold
    sections = json.loads(out.read_text())["sections"]
    assert sections.keys() == {"overhead", "dask"}
    assert all(figure["median"] > 0 for section in sections.values() for figure in section["figures"])


def test_the_change_that_an_update_is_measured_with_is_one_percent_of_each_half() -> None:
    from random import Random

    from benchmarks.incremental import change
    from benchmarks.updates import SHARDS
    from tasks.corpus import shard_of

    texts = [
        {"id": f"text-{number}", "text": f"The text with the number {number}."} for number in range(2000)
    ]
    before = {document["id"]: document["text"] for document in texts}

    changed, expected = change(texts, Random(1))

    after = {document["id"]: document["text"] for document in changed}
    found = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "replaced": {name for name in before if name in after and before[name] != after[name]},
    }
    for what, names in found.items():
        assert sorted(name for name in names if shard_of(name, SHARDS) % 2) == sorted(expected[what])
    assert sum(map(len, found.values())) == 20


@pytest.mark.nightly
def test_workers_are_held_against_loops_over_the_same_documents(tmp_path: Path) -> None:
    lines = [
        {"id": str(n), "text": f"document {n} " + "some words of a text " * (n % 7 + 3)} for n in range(80)
    ]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["--documents", "6", "--loop-documents", "2", "--fixed-steps", "4", "--codec-steps", "2"]
    places = [
        "--work",
        tmp_path / "work",
        "--out",
        tmp_path / "report.json",
        "--source",
        tmp_path / "texts.jsonl",
    ]

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.workers", *options, *places, "--only", "small", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (0, 1), done.stderr
    section = json.loads(done.stdout)["sections"]["small"]
    assert [figure["name"] for figure in section["figures"]] == [
        "workers, the whole sample: blocks",
        "loop, until a document passes: blocks",
        "loop, 4 steps: blocks",
    ]
    assert any("4.00 steps a block" in note for note in section["notes"])
    assert section == json.loads((tmp_path / "report.json").read_text())["sections"]["small"]
