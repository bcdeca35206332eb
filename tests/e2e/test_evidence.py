"""Evidence of a finished chain: read without an alignment, and replaced in a snapshot."""

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
    assert copy.store.verify(full=True).ok
