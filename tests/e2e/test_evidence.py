"""Evidence of a finished chain: read without an alignment, replaced in a snapshot, and told by the report."""

import json

import pytest

from tests.e2e.workplace import Workplace

SMALL = ("--set", "reading.steps=2", "--set", "reading.rows=4", "--set", "reading.validation_rows=4")


@pytest.mark.slow
def test_a_readout_is_audited_a_core_reads_and_a_memory_is_replaced(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    audited = copy.cellar("index", "audit", "--json")
    assert audited.code == 0, audited.err
    [found] = json.loads(audited.out)["readouts"].values()
    assert found["passed"] is True
    assert found["elements"] == copy.store.snapshot("docs").kinds["memory"]

    memories = copy.pin("memory").snapshot or ""
    bare = copy.cellar("index", "audit", "--snapshot", memories)
    assert (bare.code, "holds no readout to audit" in bare.err) == (4, True)

    read = copy.cellar("eval", "run", "reading", *SMALL, "--json", **with_server)
    assert read.code == 0, read.err
    result = json.loads(read.out)
    assert result["protocol"] == "question-only"
    assert {row["family"] for row in result["conditions"].values()} == {
        "standalone",
        "external-memory",
        "oracle-element",
    }
    assert copy.store.snapshot("docs").id == result["snapshot"]

    replaced = copy.cellar("eval", "run", "replacement", "--json", **with_server)
    assert replaced.code == 0, replaced.err
    change = json.loads(replaced.out)
    assert change["exact"] is True
    assert change["elsewhere"]["changed"] == 0

    for name, shown in (("reading", "question-only"), ("replacement", "exactly those  yes")):
        lines = copy.cellar("eval", "show", f"results/{name}.json")
        assert (lines.code, " ".join(shown.split()) in " ".join(lines.out.split())) == (0, True)

    ended = copy.cellar("eval", "run", "--out", "reported", "--json", **with_server)
    assert ended.code == 0, ended.err
    summary = json.loads(ended.out)
    assert summary["reading"]["conditions"] == result["conditions"]
    assert summary["reading"]["refs"]["summary"] == result["evaluation"]
    assert set(summary["reading"]["latency_ms"]) == set(result["conditions"])
    told = {answer["new"] for answer in summary["replacement"]["answers"]} - {None}
    assert told
    assert told <= set(change["edited"].values())
    shown = copy.cellar("eval", "show", "reported")
    assert shown.code == 0, shown.err
    page = (copy.folder / "reported/report.html").read_text()
    assert all(f'id="{subject}"' in page for subject in ("reading", "replacement"))
    assert copy.store.verify(full=True).ok
