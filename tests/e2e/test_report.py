"""The report takes in what else was evaluated: the index of its snapshot, and the skills of its store."""

import json

import pytest

from tests.e2e.workplace import Workplace


@pytest.mark.slow
def test_evaluations_of_index_and_skills_join_the_report_once_they_are_there(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    before = json.loads((copy.folder / "build/demo/summary.json").read_text())
    made = {}
    for subject in ("addressing", "skills"):
        ended = copy.cellar("eval", "run", subject, "--out", "evaluated", "--json", **with_server)
        assert ended.code == 0, ended.err
        made[subject] = json.loads(ended.out)

    ended = copy.cellar("eval", "run", "--out", "reported", "--json", **with_server)

    assert ended.code == 0, ended.err
    summary = json.loads(ended.out)
    assert before.keys().isdisjoint(made)
    assert summary["snapshot"] == made["addressing"]["snapshot"] == before["snapshot"]
    for subject, figures in made.items():
        assert summary[subject]["refs"] == {
            "summary": figures["evaluation"],
            "samples": figures["samples"],
        }
    assert summary["addressing"]["table"] == made["addressing"]["table"]
    assert summary["skills"]["routing"] == made["skills"]["routing"]
    page = (copy.folder / "reported/report.html").read_text()
    assert all(f'id="{subject}"' in page for subject in made)
    assert (copy.folder / "reported/plots/recall.svg").exists()
    assert not (copy.folder / "build/demo/plots/recall.svg").exists()
    assert copy.store.verify(full=True).ok
