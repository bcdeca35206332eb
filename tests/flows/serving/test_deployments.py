"""A file of deployments says what runs when; what cannot be done is said in one sentence before it starts."""

from pathlib import Path

import pytest
import yaml

from flows.errors import ScheduleError
from flows.serving.deployments import load_deployments
from store.errors import InputError

ROOT = Path(__file__).parents[3]


def written(folder: Path, *deployments: object) -> Path:
    path = folder / "prefect.yaml"
    path.write_text(yaml.safe_dump({"deployments": list(deployments)}))
    return path


def verify(**changes: object) -> dict[str, object]:
    return {"name": "verify", "entrypoint": "flows/scheduled.py:verify", **changes}


def test_the_shipped_file_is_valid() -> None:
    found = {deployment.name: deployment for deployment in load_deployments(ROOT / "prefect.yaml")}
    assert {"evaluate-new", "verify", "gc"} <= found.keys()
    for name in ("evaluate-new", "verify", "gc"):
        [schedule] = found[name].schedules
        assert schedule.cron is not None
        assert schedule.timezone != "UTC"
    on_hosts = [one for one in found.values() if one.module_path.startswith("flows.scheduled_hosts.")]
    assert {one.name for one in on_hosts} == {
        *("larc-train", "larc-eval", "larc-replay"),
        *("anneal-write", "anneal-consolidate", "anneal-eval", "anneal-cumulate"),
    }
    for one in on_hosts:
        assert one.flow().name == one.name
        assert [schedule.active for schedule in one.schedules] == [False]  # a store need not have a host
    parameters = found["update"].parameters
    assert "head" not in parameters  # that of the corpus
    assert parameters["wait_minutes"] > 0


def test_a_flow_is_named_by_module_or_by_path(tmp_path: Path) -> None:
    entries = [verify(), verify(name="again", entrypoint="flows.scheduled.verify")]
    one, two = load_deployments(written(tmp_path, *entries))
    assert one.flow() is two.flow()
    assert one.module_path == two.module_path == "flows.scheduled.verify"


def test_some_of_them_are_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, verify(), verify(name="other"))
    assert [deployment.name for deployment in load_deployments(path, ["other"])] == ["other"]
    with pytest.raises(ScheduleError, match="has no deployment 'third'; it has verify, other"):
        load_deployments(path, ["third"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entrypoint": "flows/scheduled.py:verfiy"}, "there is no flow at flows/scheduled.py:verfiy"),
        ({"entrypoint": "flows/scheduled.py:load_params"}, "there is no flow at"),
        ({"entrypoint": "prefect_plain.plain"}, "would not say which process they are"),
        ({"entrypoint": "nowhere.at.all"}, "there is no flow at nowhere.at.all"),
        ({"schedules": [{"cron": "often"}]}, "verify.schedules.0.cron: 'often' is no cron expression"),
        ({"schedules": [{"cron": "0 25 * * *"}]}, "is no cron expression"),
        (
            {"schedules": [{"cron": "0 2 * * *", "timezone": "Europe/Atlantis"}]},
            "verify.schedules.0.timezone: 'Europe/Atlantis' is no time zone",
        ),
        ({"schedules": [{"timezone": "UTC"}]}, "a schedule has either cron or interval"),
        ({"parameters": {"samples": 0.5}}, "takes no 'samples'"),
        ({"parameters": {"sample": "much"}}, "verify.parameters: sample: Input should be a valid number"),
        (
            {"concurrency_limit": {"limit": 0}},
            "concurrency_limit.limit: input should be greater than 0",
        ),
        ({"schedule": []}, "verify.schedule: cellar knows no such setting"),
        ({"schedules": [{"interval": float("inf")}]}, "schedules.0.interval: input should be less than"),
        ({"schedules": [{"interval": float("nan")}]}, "schedules.0.interval: input should be"),
        ({"schedules": [{"interval": 1e-9}]}, "schedules.0.interval: input should be greater than"),
        ({"schedules": [{"interval": 1e30}]}, "schedules.0.interval: input should be less than"),
        ({"schedules": [{"interval": 9, "timezone": "A" * 5000}]}, "is no time zone"),
        ({"schedules": [{"interval": 9, "slug": "a"}] * 2}, "two schedules have the slug a"),
        ({"name": "a/b"}, "'a/b' is no name: it must be one line without / % & < >"),
        ({"name": "a\nb"}, "is no name: it must be one line"),
        ({"entrypoint": "..flows.x"}, "there is no flow at ..flows.x"),
        ({"entrypoint": "/etc/passwd:update"}, "there is no flow at /etc/passwd:update"),
        ({"entrypoint": "broken_syntax.x"}, "broken_syntax cannot be imported: SyntaxError: "),
        ({"entrypoint": "that_ends.x"}, "that_ends cannot be imported: SystemExit: 0"),
        ({"parameters": {"sample": float("nan")}}, "verify.parameters: sample: Input should be"),
        ({"parameters": {"sample": -5}}, "verify.parameters: sample: Input should be greater than 0"),
        (
            {"entrypoint": "flows.scheduled.update", "parameters": {"timezone": "Nowhere"}},
            "'Nowhere' is no time zone",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, changes: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prefect_plain.py").write_text(
        "from prefect import flow\n\n@flow\ndef plain() -> None:\n    pass\n"
    )
    (tmp_path / "broken_syntax.py").write_text("def x(:\n")
    (tmp_path / "that_ends.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = written(tmp_path, verify(**changes))
    with pytest.raises(ScheduleError) as caught:
        load_deployments(path)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist; start from the one in the source of cellar or in docs/scheduling.md"),
        ("deployments: [", "is not valid YAML at line"),
        ("[]", "input should be a valid dictionary"),
        ("deployments: []", "there is no deployment"),
        ("name: x", "deployments: field required"),
        ("deployments: !!set {a, b}", "deployments.0: input should be a valid dictionary"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "prefect.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ScheduleError, match=said):
        load_deployments(path)


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="two deployments are called verify"):
        load_deployments(written(tmp_path, verify(), verify()))
