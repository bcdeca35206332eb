"""What Prefect tries again, and what it keeps, on a real Prefect server."""

import json
import logging
from collections.abc import Iterator

import pytest
from prefect._internal.concurrency.services import QueueService
from prefect.exceptions import ParameterTypeError
from prefect.settings import get_current_settings

from flows.engine import bind, flow
from flows.params import Params
from flows.settings import Settings
from store.errors import AccessDenied, CellarError, DiskFull, InputError, ReadOnly, Unreachable

pytestmark = pytest.mark.usefixtures("prefect_server")


def test_storage_that_did_not_answer_is_asked_again() -> None:
    calls = []

    def step(value: int) -> int:
        calls.append(value)
        if len(calls) < 3:
            raise Unreachable("no answer")
        return value + 1

    task = bind(step, name="step").with_options(retry_delay_seconds=0)
    assert flow(lambda: task(1), name="asks-again")() == 2
    assert calls == [1, 1, 1]


@pytest.mark.parametrize("kind", [InputError, ReadOnly, AccessDenied, DiskFull])
def test_what_only_a_person_can_mend_is_not_tried_again_and_its_error_reaches_the_caller(
    kind: type[CellarError],
) -> None:
    calls = []

    def step() -> None:
        calls.append(1)
        raise kind("somebody has to do something")

    task = bind(step, name="step")
    with pytest.raises(kind, match="somebody has to"):
        flow(lambda: task(), name="gives-up")()
    assert calls == [1]


def test_prefect_keeps_no_result_and_never_pickles_an_error() -> None:
    def fail() -> None:
        raise InputError("nothing is pickled")

    task = bind(lambda: {"answer": 42}, name="step")
    assert flow(lambda: task(), name="keeps-nothing")() == {"answer": 42}
    with pytest.raises(InputError):
        flow(lambda: bind(fail, name="fail")(), name="fails")()
    storage = get_current_settings().results.local_storage_path
    kept = [json.loads(path.read_text()) for path in storage.iterdir()]
    # Other tests of this session leave errors there as well; every one of them was JSON.
    assert "store.errors.InputError" in {record["__exc_type__"] for record in kept}


def test_a_sender_of_prefect_that_is_not_done_at_the_end_is_no_warning() -> None:
    flow(lambda: None, name="sends-events-and-logs")()
    senders = set(_kinds_of(QueueService)) - {"QueueService"}

    assert {"EventsWorker", "APILogWorker"} <= senders
    loud = {name for name in senders if logging.getLogger(name).isEnabledFor(logging.WARNING)}
    assert loud <= {"FutureQueueService", "BatchedQueueService"}, "they send something and are not silenced"


def _kinds_of(kind: type) -> Iterator[str]:
    yield kind.__name__
    for narrower in kind.__subclasses__():
        yield from _kinds_of(narrower)


def test_the_schema_of_a_flow_tells_of_no_parameter_and_a_wrong_one_is_refused_all_the_same() -> None:
    def of(params: Params, settings: Settings) -> int:
        return params.corpus.shards

    taking = flow(of, name="takes-parameters")
    assert taking.parameters.definitions["Params"] == {"title": "Params", "type": "object"}
    assert taking.parameters.definitions["Settings"] == {"title": "Settings", "type": "object"}
    assert taking(Params(), {"store": "file:s"}) == Params().corpus.shards
    with pytest.raises(ParameterTypeError, match="shardz"):
        taking({"corpus": {"shardz": 1}}, Settings())
