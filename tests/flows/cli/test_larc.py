"""`cellar larc` trains and evaluates a study on a tiny host, through real flows and a real store."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]
TINY = """
host: {name: tiny, dtype: float32}
larc: {rank: 2}
programs: {train: 2, development: 2, reserved: 1, preflight: 1, support: 3, query: 5}
study:
  name: tiny
  seeds: [5]
  objectives: [adapted]
  outer: {updates: 2, curve_every: 2}
  judge: {resamples: 100}
  prompt_tokens: 1000
  answer_tokens: 64
"""


@pytest.fixture
def tiny(workplace: Path, cellar: Cellar) -> None:
    write_tiny_host(workplace / "tiny")
    Path("params.yaml").write_text(TINY)
    assert cellar("host", "add", "tiny", "tiny")[0] == 0


@pytest.mark.parametrize("command", ["train", "eval"])
def test_without_its_host_nothing_is_started(cellar: Cellar, workplace: Path, command: str) -> None:
    cellar("init")

    code, _, err = cellar("larc", command, "--set", "host.name=other")

    assert code == 4
    assert "has no host other" in err
    assert err.count("\n") == 1


def planned(cellar: Cellar, *arguments: str) -> dict[str, list[str]]:
    """The steps of a plan that would run, with their reasons."""
    code, out, err = cellar("plan", *arguments, "--json")
    assert code == 0, err
    return {step["name"]: step["reasons"] for step in json.loads(out)["steps"] if step["state"] != "done"}


@pytest.mark.usefixtures("prefect_server", "tiny")
def test_a_study_is_trained_evaluated_and_shown(cellar: Cellar) -> None:
    assert planned(cellar, "larc-eval") == {
        "slow states": ["never built"],
        "predictions": ["its input will change: slow states"],
        "evaluation": ["its input will change: predictions"],
    }
    code, out, err = cellar("larc", "train", "--json")
    assert code == 0, err
    [trained] = json.loads(out)
    assert planned(cellar, "larc-train") == {}
    assert planned(cellar, "larc-eval")["predictions"] == ["never sealed"]
    another = planned(cellar, "larc-train", "--set", "study.inner_steps=1", "--set", "study.seeds=[5, 6]")
    assert another == {"slow states": ["study.inner_steps 2 -> 1"]}

    code, out, err = cellar("larc", "eval", "--out", "figures")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[-2:] == ["wrote figures/selection.json", "wrote figures/selection.html"]
    figures = json.loads(Path("figures/selection.json").read_text())

    assert planned(cellar, "larc-eval") == {}
    assert planned(cellar, "larc-eval", "--set", "study.judge.resamples=101") == {
        "evaluation": ["never evaluated so"]
    }
    assert trained["residual"].startswith("residual/tiny/adapted-5@")
    assert [point["update"] for point in trained["facts"]["curve"]] == [0, 2]
    assert figures["trained"] == [trained["residual"]]
    assert figures["conditions"].keys() == {"adapted", "untrained", "rule"}
    shown = cellar("eval", "show", "figures")[1]
    assert re.search(r"^adapted\s+real/keep\s+\d+\.\d\d\s+\[", shown, re.MULTILINE)
    assert re.search(r"^rule\s+rule\s+", shown, re.MULTILINE)
    assert shown.splitlines() == lines[:-2]
    again = json.loads(cellar("larc", "eval", "--out", "figures", "--json")[1])
    assert again == figures
