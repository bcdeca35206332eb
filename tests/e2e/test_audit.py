"""The leakage audit of a finished chain: it joins the evaluation's figures and changes none of them."""

import json

import pytest

from tests.e2e.workplace import Workplace


@pytest.mark.slow
def test_an_audit_joins_the_figures_of_the_evaluation_and_leaves_them_as_they_are(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    before = json.loads((copy.folder / "build/demo/summary.json").read_text())

    audited = copy.cellar("eval", "run", "audit", "--out", "audited", "--json", **with_server)

    assert audited.code == 0, audited.err
    summary = json.loads(audited.out)
    assert "leakage" not in before
    of_the_run = {"leakage", "found", "stages", "wall_s", "peak_rss_mb", "settings"}
    assert {name: summary[name] for name in before.keys() - of_the_run} == {
        name: before[name] for name in before.keys() - of_the_run
    }
    assert summary["found"] == ["evaluation"]
    leakage = summary["leakage"]
    assert sum(leakage["documents"].values()) >= before["documents"]
    everything = leakage["scores"]["all"]
    assert everything["tasks"] == before["tasks"]["count"]
    assert {name: figures["nll"]["value"] for name, figures in everything["conditions"].items()} == before[
        "nll"
    ]
    assert 'id="leakage"' in (copy.folder / "audited/report.html").read_text()
    assert copy.store.verify(full=True).ok

    shown = copy.cellar("eval", "show", "audited")
    assert "without near-duplicates" in shown.out
