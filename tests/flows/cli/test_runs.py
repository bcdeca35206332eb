"""Runs on the command line: listed, shown by a few digits, and started only where somebody runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from store import Store
from store.errors import Unreachable
from tests.store.samples import memory

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def verified(workplace: Path, monkeypatch: pytest.MonkeyPatch, prefect_server: str) -> str:
    """The id of a run of the flow `verify` on a store of this folder."""
    from flows import scheduled
    from flows.runs.listing import list_runs

    monkeypatch.setenv("CELLAR_STORE", "file:store")
    Store.create("file:store").publish([memory(1)], message="one")
    scheduled.verify(sample=0.5)
    return list_runs(flow="verify", limit=1)[0].id


def test_a_run_is_listed_and_shown_by_the_first_digits_of_its_id(cellar: Cellar, verified: str) -> None:
    code, out, err = cellar("runs", "--flow", "verify", "--since", "1h", "--limit", "1")
    assert code == 0, err
    head, row = out.splitlines()
    assert head.split() == ["run", "started", "flow", "state", "duration", "snapshot", "reason"]
    assert row.split()[0] == verified[:8]
    assert row.split()[2:4] == ["verify", "Completed"]

    code, out, err = cellar("runs", "show", verified[:8], "--json")
    assert code == 0, err
    shown = json.loads(out)
    assert (shown["id"], shown["flow"], shown["state"]) == (verified, "verify", "Completed")
    assert shown["parameters"]["sample"] == 0.5
    assert [task["state"] for task in shown["tasks"]] == ["Completed"]


def test_what_a_run_did_is_shown_before_all_that_it_was_told(cellar: Cellar, prefect_server: str) -> None:
    from flows.engine import bind, flow
    from flows.params import Params
    from flows.runs.listing import list_runs

    def work(params: Params) -> None:
        bind(lambda: None, name="step")()

    name = f"told-{uuid4().hex[:8]}"
    flow(work, name=name)(Params())
    [run] = list_runs(flow=name)

    code, out, err = cellar("runs", "show", run.id)
    assert code == 0, err
    lines = out.splitlines()
    assert lines.index("tasks") < lines.index("resolved parameters")


def test_a_run_that_has_not_begun_needs_no_reason(cellar: Cellar, prefect_server: str) -> None:
    from prefect import Flow
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled, Submitting

    name = f"submitted-{uuid4().hex[:8]}"
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(Flow(fn=lambda: None, name=name), state=Submitting())
        code, out, err = cellar("runs", "--flow", name, "--json")
        assert code == 0, err
        [shown] = json.loads(out)
        assert (shown["state"], shown["reason"]) == ("Submitting", None)
        client.set_flow_run_state(run.id, Cancelled(), force=True)
    assert json.loads(cellar("runs", "--flow", name, "--json")[1])[0]["reason"] == "no reason was recorded"


def test_a_run_is_shown_though_its_store_cannot_be_reached(
    cellar: Cellar, verified: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_reach(url: str) -> Store:
        raise Unreachable(f"{url} does not answer")

    monkeypatch.setattr(Store, "open", out_of_reach)
    code, out, err = cellar("runs", "show", verified[:8])
    assert code == 0, err
    assert verified in out
    assert "the commits of the run are not known" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "ffffffff"), 4, "no run has an id that begins with ffffffff"),
        (("show", "f"), 2, "is too short for the id of a run"),
        (("--state", "tired"), 2, "no run is ever 'tired'; states are scheduled, pending, running"),
        (("start", "nothing"), 4, "there is no deployment 'nothing'"),
        (("start", "nothing", "--set", "limit"), 2, "is not of the form name=value"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    cellar: Cellar, prefect_server: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, out, err = cellar("runs", *arguments)
    assert (ended, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


def test_without_a_database_nothing_ran_and_nothing_is_started(
    cellar: Cellar, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    refresh_global_settings_context()
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        assert cellar("runs")[:2] == (0, "no run\n")
        code, _, err = cellar("runs", "start", "update")
        assert (code, err.count("\n")) == (6, 1)
        assert "nobody would run it: start `cellar serve` first" in err
        code, _, err = cellar("deploy", "--pool", "cellar")  # no file is looked for yet
        assert (code, err.count("\n")) == (3, 1)
        assert "no Prefect API is configured; set PREFECT_API_URL" in err
    assert not (workplace / "build").exists()
