"""How step functions become Prefect tasks and flows: retries, time limits and what Prefect may keep.

Only the store caches: Prefect persists no result and has no cache policy, so nothing is pickled, and a step
that already ran is recognised by the store itself.
"""

import logging
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

# Read by Prefect when it is imported. A user's own choice stands.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")

from prefect import Flow, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas import State, TaskRun

from flows.assets import record_assets
from flows.notices import notify
from flows.runs.labels import record_process, record_snapshot
from store.errors import AccessDenied, AnswerLost, Contended, DiskFull, ReadOnly, StorageUnavailable

# Prefect's senders of events and logs speak under names of their own, beyond PREFECT_LOGGING_LEVEL. A
# command that ends while one is still sending is nothing to warn its user of.
for _sender in ("EventsWorker", "APILogWorker"):
    logging.getLogger(_sender).setLevel(logging.ERROR)

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 3
RETRY_DELAYS_S = [1.0, 4.0, 15.0]
_PASSING = (StorageUnavailable, Contended, AnswerLost, ConnectionError)
_LASTING = (ReadOnly, AccessDenied, DiskFull)
"""Storage that stays unavailable until somebody repairs it."""


def is_passing(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again can help: storage that did not answer, yes; a full disk or bad input, no."""
    try:
        state.result()
    except _LASTING:
        return False
    except BrokenPipeError:
        return False
    except _PASSING:
        return True
    except BaseException:  # noqa: BLE001 - the engine raises it again; here only its kind matters
        return False
    return False


def bind(
    step: Callable[P, R], *, name: str, timeout_s: float | None = None, tags: tuple[str, ...] = ()
) -> Task[P, R]:
    """Bind a step function as a Prefect task that retries only what trying again can mend.

    Args:
        step: a function of references and JSON-able values; its result must be JSON-able.
        timeout_s: after this long the task run fails. Code inside a C extension is not interrupted.
        tags: for whoever looks for task runs; Prefect's limits on tags apply.
    """
    return Task(
        fn=step,
        name=name,
        tags=tags,
        timeout_seconds=timeout_s,
        retries=RETRIES,
        retry_delay_seconds=RETRY_DELAYS_S,
        retry_jitter_factor=0.2,
        retry_condition_fn=is_passing,
        persist_result=False,
        result_serializer="json",
        cache_policy=NO_CACHE,
    )


def flow(function: Callable[P, R], *, name: str) -> Flow[P, R]:
    """Make a Prefect flow of a function that passes references only; a failed or crashed run is told of."""
    # Prefect always writes down the error of a failed flow; as JSON, since its default is pickle.
    return Flow(
        fn=function,
        name=name,
        persist_result=False,
        result_serializer="json",
        log_prints=False,
        on_failure=[notify.on_end],
        on_crashed=[notify.on_end],
        on_running=[record_process],
        on_completion=[record_snapshot, record_assets],
    )
