"""The whole chain by one command, and again."""

import json

import pytest

from flows.cli.demo import headlines
from tests.e2e.workplace import Ended, Workplace

FIGURES = {
    "codec": {"token_recall", "span8_exact", "loss", "cell_bytes_per_block"},
    "retrieval": {"candidate_recall", "recall_at_1", "queries_per_second"},
    "nll": {"none", "right", "retrieved", "wrong", "wrong_weighed", "shuffled", "raw_text"},
    "greedy_exact": {"none", "retrieved", "raw_text"},
    "gain": {"document_specific", "generic", "document_specific_share", "ci95"},
    "stages": {"corpus", "codec", "memory", "indexes", "snapshot", "core", "evaluation"},
}
"""The figures that a summary must hold, by section."""


@pytest.mark.slow
def test_the_chain_ends_with_a_summary_a_report_and_a_named_snapshot(
    finished: Workplace, first_run: Ended
) -> None:
    summary = json.loads(first_run.out)

    assert summary.keys() >= {"documents", "published", "rejected", "snapshot", "wall_s", "peak_rss_mb"}
    assert all(summary[section].keys() >= names for section, names in FIGURES.items())
    assert summary["documents"] == summary["published"] + summary["rejected"]
    assert json.loads((finished.folder / "build/demo/summary.json").read_text()) == summary
    assert "<html" in (finished.folder / "build/demo/report.html").read_text()
    store = finished.store
    assert store.verify(full=True).ok
    assert store.head("docs") == summary["snapshot"]
    assert store.tags() == {f"docs-{summary['snapshot'][:12]}": summary["snapshot"]}
    assert store.snapshot("docs").count == summary["published"] + 6  # codec, tokenizer, index, reranker


@pytest.mark.slow
def test_progress_is_announced_stage_by_stage(first_run: Ended) -> None:
    announced = [line.split()[0] for line in first_run.err.splitlines() if line.endswith(" s")]

    assert announced == ["corpus", "codec", "memory", "indexes", "snapshot", "core", "evaluation"]


@pytest.mark.slow
def test_a_second_run_finds_everything_done(
    copy: Workplace, first_run: Ended, with_server: dict[str, str]
) -> None:
    before = [commit.id for commit in copy.commits]

    again = copy.cellar("demo", "--json", "--quiet", **with_server)

    assert again.code == 0, again.err
    assert again.err == ""
    assert [commit.id for commit in copy.commits] == before
    first, second = json.loads(first_run.out), json.loads(again.out)
    of_the_run = {"found", "wall_s", "peak_rss_mb", "settings"}
    assert all(second[name] == first[name] for name in first.keys() - of_the_run)
    assert (first["found"], second["found"]) == ([], list(first["stages"]))
    assert headlines(second)[-1].startswith("found in the store: corpus, codec, ")


@pytest.mark.slow
def test_what_was_measured_is_shown_and_the_snapshot_answers(copy: Workplace, first_run: Ended) -> None:
    shown = copy.cellar("eval", "show", "--json")
    asked = copy.cellar("ask", "the class statement", "--json")
    verified = copy.cellar("verify", "--full", "--json")

    assert json.loads(shown.out) == json.loads(first_run.out)
    assert json.loads(asked.out)["snapshot"] == copy.pin("snapshot").snapshot
    assert json.loads(asked.out)["hits"]
    assert json.loads(verified.out)["ok"]


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_a_command_quietly(finished: Workplace) -> None:
    process = finished.start("ask", "--top", "50", "the class statement")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("1. memory/")
    process.stdout.close()

    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
