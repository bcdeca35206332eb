"""A bad network in front of a real S3 server: how it is reported, and that the store survives it.

The proxy does to the requests of `S3Backend` what `FaultyBackend` pretends. Both must say the same, so that
what the model finds on the one holds for the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from store import Store
from store.backend import Backend, s3, s3_once
from store.backend.s3 import S3Backend
from store.backend.s3_errors import certainly_not_done
from store.errors import (
    AnswerLost,
    CellarError,
    CollectorBusy,
    CommitStateUnknown,
    IntegrityError,
    StorageUnavailable,
    Unreachable,
)
from store.gc.turn import Turn
from store.store import create_format
from tests.s3_proxy import S3Proxy, s3_proxy
from tests.seaweedfs import S3Server
from tests.store.faulty import DEADLY, LISTING, POSSIBLE, Fault, FaultyBackend, Schedule, nothing, seeded
from tests.store.killed_writer import work

CALLS: dict[str, Callable[[Backend, str], object]] = {
    "read": lambda backend, folder: backend.read(f"{folder}/there"),
    "info": lambda backend, folder: backend.info(f"{folder}/there") and None,
    "list": lambda backend, folder: [item.size for item in backend.list(f"{folder}/")],
    "put": lambda backend, folder: backend.put(f"{folder}/new", b"written"),
    "create": lambda backend, folder: backend.create(f"{folder}/new", b"written"),
    "replace": lambda backend, folder: backend.replace(
        f"{folder}/there", b"changed", token=backend.read_with_token(f"{folder}/there")[1]
    ),
    "delete": lambda backend, folder: backend.delete(f"{folder}/there"),
}
NETWORK = sorted(set(Fault) - DEADLY - LISTING - {Fault.DELAYED, Fault.REFUSED})
"""Faults of the way to the storage; for `REFUSED` nobody must listen."""


@pytest.fixture(scope="module")
def running_proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with s3_proxy(s3_server) as running:
        yield running


@pytest.fixture
def proxy(running_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    """Return a proxy of a well network, and let it be well again afterwards."""
    for name, value in running_proxy.server.environment().items():
        monkeypatch.setenv(name, value)
    running_proxy.met.clear()
    yield running_proxy
    running_proxy.schedule, running_proxy.silent = nothing, False
    running_proxy.arrive()


def open_at(url: str, endpoint: str) -> S3Backend:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        return S3Backend(*url.removeprefix("s3://").split("/"))


def once(fault: Fault, kind: str) -> Schedule:
    """Let the first call of a kind meet a fault."""
    left = [fault]
    return lambda call: left.pop() if left and call.kind == kind else None


def outcome(kind: str, backend: Backend, folder: str) -> object:
    try:
        return CALLS[kind](backend, folder)
    except CellarError as error:
        return type(error)


def contents(backend: Backend, folder: str) -> list[bytes]:
    return [backend.read(item.key) for item in backend.list(f"{folder}/")]


@pytest.mark.parametrize("kind", CALLS)
def test_the_faulty_backend_answers_as_a_faulty_network_does(
    proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """By error class, and by what is written. What botocore repeats is left out here."""
    monkeypatch.setattr(s3, "_ATTEMPTS", 1)
    plain = open_at(proxy.server.url(), proxy.server.endpoint)
    behind = open_at(plain.url, proxy.endpoint)
    for fault in [fault for fault in NETWORK if fault in POSSIBLE[kind]]:
        real, pretended = f"real/{fault}", f"pretended/{fault}"
        for folder in (real, pretended):
            plain.put(f"{folder}/there", b"some bytes")
        faulty = FaultyBackend(plain, once(fault, kind))
        proxy.schedule = once(fault, kind)

        said = outcome(kind, behind, real)

        assert proxy.met.pop()[1] is fault
        expected = outcome(kind, faulty, pretended)
        if fault is Fault.SHORT:
            expected = Unreachable  # HTTP tells the length: only a file can be short unnoticed
        if fault is Fault.FLIPPED:
            assert isinstance(said, bytes)
            assert said != b"some bytes"
        else:
            assert said == expected, fault
        assert contents(plain, real) == contents(plain, pretended), fault
        proxy.arrive()
        while faulty.wire.under_way:
            faulty.wire.arrive()
        assert contents(plain, real) == contents(plain, pretended), fault


@pytest.mark.parametrize("kind", ["read", "info", "list", "put", "delete"])
def test_what_may_be_repeated_is_repeated(proxy: S3Proxy, kind: str) -> None:
    plain = open_at(proxy.server.url(), proxy.server.endpoint)
    behind = open_at(plain.url, proxy.endpoint)
    for fault in (Fault.LANDED, Fault.BUSY, Fault.SHORT):
        if fault in POSSIBLE[kind] and (kind, fault) != ("delete", Fault.LANDED):
            plain.put(f"{fault}/there", b"some bytes")
            expected = outcome(kind, plain, fault)
            plain.put(f"{fault}/there", b"some bytes")
            plain.delete(f"{fault}/new")
            proxy.schedule = once(fault, kind)

            assert outcome(kind, behind, fault) == expected, fault
            assert proxy.met.pop()[1] is fault


@pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.LANDED, Fault.LATE, Fault.FAILED, Fault.FAILED_AFTER])
def test_a_deletion_that_may_still_happen_is_not_repeated(proxy: S3Proxy, fault: Fault) -> None:
    """Or a copy of it could arrive when it was taken for done, and delete what was written since."""
    plain = open_at(proxy.server.url(), proxy.server.endpoint)
    behind = open_at(plain.url, proxy.endpoint)
    plain.put("there", b"some bytes")
    proxy.schedule, before = once(fault, "delete"), proxy.calls

    with pytest.raises(StorageUnavailable):
        behind.delete("there")

    assert proxy.calls == before + 1


def test_a_deletion_that_waits_in_a_proxy_keeps_the_next_collector_waiting(
    proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(s3._OPTIONS, "read_timeout", 0.5)
    plain = open_at(proxy.server.url(), proxy.server.endpoint)
    behind = open_at(plain.url, proxy.endpoint)
    plain.put("packs/aa/old", b"a pack")
    proxy.schedule, proxy.silent = once(Fault.LATE, "delete"), True

    with pytest.raises(Unreachable), Turn(behind, "first") as turn:
        turn.delete("packs/aa/old")

    with pytest.raises(CollectorBusy):
        Turn(plain, "second").__enter__()
    proxy.arrive()
    assert plain.info("packs/aa/old") is None


def test_a_deletion_that_was_certainly_not_done_is_repeated_a_few_times(
    proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_once, "_FIRST_PAUSE_S", 0.0)
    backend = open_at(proxy.server.url(), proxy.endpoint)
    backend.put("there", b"some bytes")
    proxy.schedule = lambda call: Fault.BUSY

    before = proxy.calls
    with pytest.raises(StorageUnavailable, match="SlowDown"):
        backend.delete("there")
    assert proxy.calls == before + s3._ATTEMPTS

    refused = open_at(backend.url, "http://127.0.0.1:9")
    sent: list[object] = []
    refused._client_once.meta.events.register("before-send.s3", lambda **_: sent.append(1))
    with pytest.raises(Unreachable):
        refused.delete("there")
    assert len(sent) == s3._ATTEMPTS


@pytest.mark.parametrize(
    ("status", "code", "again"),
    [(429, "429", True), (503, "SlowDown", True), (503, "503", False), (502, "502", False)],
)
def test_a_gateway_that_says_503_may_have_passed_a_deletion_on(status: int, code: str, again: bool) -> None:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}

    assert certainly_not_done(ClientError(answer, "DeleteObject")) is again


def test_a_server_that_stays_silent_is_given_up(proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_ATTEMPTS", 1)
    monkeypatch.setitem(s3._OPTIONS, "read_timeout", 0.5)
    backend = open_at(proxy.server.url(), proxy.endpoint)
    proxy.schedule, proxy.silent = (lambda call: Fault.LANDED), True

    assert outcome("read", backend, "a") is Unreachable
    assert outcome("put", backend, "a") is Unreachable
    assert outcome("create", backend, "b") is AnswerLost


def test_a_conditional_write_that_nobody_took_is_known_not_to_be_done(proxy: S3Proxy) -> None:
    backend = open_at(proxy.server.url(), "http://127.0.0.1:9")

    assert outcome("create", backend, "a") is Unreachable


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_job_over_a_bad_network_ends_as_over_a_good_one(proxy: S3Proxy, seed: int) -> None:
    """Repeated until it says that it is done; whatever it met, every element is published once."""
    good, bad = (open_at(proxy.server.url(), proxy.server.endpoint) for _ in range(2))
    expected = work(good)
    create_format(bad)
    faults = sorted(set(NETWORK) - {Fault.DENIED, Fault.FULL})
    generator = random.Random(seed)
    proxy.schedule = seeded(seed, rate=0.25, faults=faults)
    behind = open_at(bad.url, proxy.endpoint)

    for _ in range(50):
        try:
            assert work(behind) == expected
            break
        except (StorageUnavailable, CommitStateUnknown, IntegrityError):
            if generator.random() < 0.5:
                proxy.arrive()
    else:
        pytest.fail("the job did not get through")
    proxy.schedule = nothing
    proxy.arrive()

    store = Store(bad)
    assert len(proxy.met) > 3
    assert store.verify(full=True).findings == ()
    assert [commit.elements for commit in store.log()] == [1, 24, 0]
    assert store.snapshot("done").id == store.snapshot("main").id == expected
