"""Commands that the page on scheduling shows exist, with the options that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from flows.cli.app import app
from flows.serving.deployments import load_deployments

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ cellar (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_understood(command: str) -> None:
    called, bound, _ = app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)
    assert callable(called)
    assert bound is not None


def test_the_file_of_the_page_can_be_served(tmp_path: Path) -> None:
    [file] = re.findall(r"^```yaml\n(deployments:.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "prefect.yaml").write_text(file)
    [deployment] = load_deployments(tmp_path / "prefect.yaml")
    assert deployment.flow().name == "update"


def test_flows_and_parameters_of_the_page_are_those_that_there_are() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`\w+`[^|]*) \|", PAGE, re.MULTILINE)
    shown = {flow: re.findall(r"`(\w+)`", parameters) for flow, parameters in rows}
    flows = {d.module_path.rpartition(".")[2]: d.flow() for d in load_deployments(ROOT / "prefect.yaml")}
    assert shown == {name: list(flow.parameters.properties) for name, flow in flows.items()}
