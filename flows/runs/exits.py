"""Why the process of a run ended before the run did: a signal, or an error that the process logged."""

import logging
import re
import signal
from typing import TYPE_CHECKING
from uuid import UUID

from flows.runs.labels import PROCESS

if TYPE_CHECKING:
    from prefect.client.schemas import FlowRun

_EXITED = re.compile(r"Process exited with status code: (-?\d+)")
"""What Prefect's runner and workers say of a run whose process they saw end."""


def exit_code(message: str | None) -> int | None:
    """The exit code in the message of a state, negative for a signal; None if it is about something else."""
    exited = _EXITED.match(message or "")
    return int(exited[1]) if exited else None


def ended_by_itself(run: "FlowRun") -> bool:
    """Whether the process of a run ended of its own before the flow began, so that it would do so again."""
    return run.state is not None and (exit_code(run.state.message) or 0) > 0 and PROCESS not in run.labels


def reason_of_exit(run: UUID, code: int) -> str:
    """Why the process of a run ended, in words, with the last line of the error that it logged."""
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    error = _last_error(run)
    return f"its process ended with exit code {code}{f': {error}' if error else ''}"


def _last_error(run: UUID) -> str | None:
    """The last line of the last error in the log of a run."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterLevel
    from prefect.client.schemas.sorting import LogSort

    chosen = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run]), level=LogFilterLevel(ge_=logging.ERROR))
    with get_client(sync_client=True) as client:
        # Not what the one says who watched the process and saw it end.
        found = [
            log.message
            for log in client.read_logs(chosen, sort=LogSort.TIMESTAMP_DESC)
            if exit_code(log.message) is None
        ]
    lines = found[0].strip().splitlines() if found else []
    return lines[-1].strip() if lines else None
