"""Who serves stops once, however often it is told to, and says when there is no API to serve with."""

from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.errors import PrefectServerError
from flows.serving.deployments import load_deployments
from flows.serving.serve import serve
from flows.serving.stoppable_runner import StoppableRunner
from flows.settings import Settings
from tests.flows.serving.test_deployments import verify, written


def test_a_second_signal_does_not_break_off_the_stop(prefect_server: str) -> None:
    runner = StoppableRunner(name="test")
    with pytest.raises(SystemExit):  # nothing has started that would have to end first
        runner.handle_sigterm()
    runner.stopping = True
    runner.handle_sigterm()


def test_an_api_that_does_not_answer_is_named(tmp_path: Path) -> None:
    deployments = load_deployments(written(tmp_path, verify()))
    nowhere = {PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    with (
        temporary_settings(nowhere),
        pytest.raises(PrefectServerError, match=r"the Prefect API at http://\S+:9/api does not answer"),
    ):
        serve(Settings(work_dir=tmp_path, store="file:none"), deployments, say=print)
