"""What a file of deployments asks for is done: the head moves on, and its new snapshot is evaluated."""

import json
import signal

import pytest

from tests.e2e.serving import QUICK, processes_of, run_of, runs, served_states
from tests.e2e.workplace import Workplace, wait_for

pytestmark = pytest.mark.slow

DEPLOYMENTS = """
deployments:
- name: nightly
  entrypoint: flows.scheduled.update
  parameters: {head: docs, then: [evaluate-new]}
  schedules: [{cron: "0 2 29 2 *", timezone: Europe/Berlin}]
- name: evaluate-new
  entrypoint: flows.scheduled.evaluate_new
"""


def test_a_scheduled_update_has_its_new_snapshot_evaluated(finished: Workplace, copy: Workplace) -> None:
    (copy.folder / "deployments.yaml").write_text(DEPLOYMENTS)
    text = min((copy.folder / "texts").iterdir())
    (copy.folder / "texts" / "new.txt").write_text(text.read_text() + " And one thing more.")
    [before] = copy.store.heads().values()
    log = copy.folder / "serve.log"

    process = copy.start(
        "serve", "--port", "0", "--file", "deployments.yaml", "--now", "nightly", log=log, **QUICK
    )
    ended = ("Completed", "Failed", "Crashed")
    wait_for(lambda: [state in ended for state in served_states(copy)].count(True) == 2, process, every=0.2)
    second = copy.cellar("serve", "--file", "deployments.yaml")
    assert second.code == 7
    assert f"process {process.pid} serves it at http://127.0.0.1:" in second.err
    evaluated, updated = runs(copy)[:2]
    shown = json.loads(copy.cellar("runs", "show", updated["id"][:8], "--json").out)
    wait_for(lambda: not run_of(process), process, every=0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0

    [after] = copy.store.heads().values()
    assert after != before
    assert (updated["deployment"], updated["state"], updated["snapshot"]) == ("nightly", "Completed", after)
    assert (evaluated["deployment"], evaluated["state"], evaluated["snapshot"]) == (
        "evaluate-new",
        "Completed",
        after,
    )
    records = copy.store.catalog().rows("evaluation")
    assert {before, after} <= {row.provenance.get("snapshot") for row in records}
    assert processes_of(copy) == []

    assert shown["parameters"] == {"head": "docs", "then": ["evaluate-new"]}
    assert shown["params"]["corpus"]["shards"] == 4
    assert shown["settings"]["store"] == copy.url
    assert shown["commits"][-1]["snapshot"] == after
