"""Who is told of failed and degraded runs, and that a receiver can neither fail nor hold up a run."""

import json
import logging
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.engine import bind, flow
from flows.errors import NotDelivered, SettingsError
from flows.notices import degraded, notify
from flows.notices.notify import Notifications, load_notifications
from flows.settings import load_settings
from store import Element, Store
from store.errors import InputError
from tasks.memory import summarise
from tests.e2e.workplace import ROOT
from tests.flows.notices.receiver import SECRET, Receiver, receiving
from tests.said import said

FIELDS = {
    "text",
    "event",
    "flow",
    "run",
    "state",
    "reason",
    "snapshot",
    "store",
    "figures",
    "host",
    "user",
    "time",
}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "REJECTED_SHARE", "RECALL"):
        monkeypatch.delenv(f"CELLAR_NOTIFY_{name}", raising=False)
    monkeypatch.setattr(notify, "_PAUSES_S", (0.0, 0.0))


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as one:
        monkeypatch.setenv("CELLAR_NOTIFY_URL", one.url)
        yield one


def tell() -> None:
    notify.failed(
        flow="build-memory", run="42", state="Failed", reason="<!channel> no & more", store="s3://b"
    )


def test_a_failure_is_told_in_fields_and_in_words_that_call_nobody(receiver: Receiver) -> None:
    tell()

    [told] = receiver.messages
    assert told.keys() == FIELDS
    assert (told["event"], told["flow"], told["run"], told["state"]) == (
        "failed",
        "build-memory",
        "42",
        "Failed",
    )
    assert (told["reason"], told["store"], told["figures"]) == ("<!channel> no & more", "s3://b", {})
    assert told["text"].startswith(
        "cellar: build-memory failed: &lt;!channel&gt; no &amp; more (run 42, store "
    )


def test_the_message_has_the_fields_that_are_documented() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("## Notifications")[2]
    shown = json.loads(page.partition("```json")[2].partition("```")[0])
    assert shown.keys() == FIELDS
    assert shown["reason"] in shown["text"]


def test_nobody_is_told_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "deliver", lambda *_: pytest.fail("something was posted"))
    tell()
    monkeypatch.setenv("CELLAR_NOTIFY_URL", "")
    tell()


@pytest.mark.parametrize(("codes", "attempts"), [([503, 500, 200], 3), ([429, 204], 2)])
def test_a_receiver_that_cannot_now_is_asked_again(
    receiver: Receiver, codes: list[int], attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.codes = list(codes)
    tell()
    assert len(receiver.messages) == attempts
    assert said(caplog, "flows.notices") == []


@pytest.mark.parametrize(("code", "attempts"), [(500, 3), (404, 1), (302, 1)])
def test_a_receiver_that_refuses_is_one_line_in_the_log(
    receiver: Receiver, code: int, attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.codes, receiver.location = [code], "/elsewhere"
    tell()
    assert len(receiver.paths) == attempts
    assert "/elsewhere" not in receiver.paths  # a redirect is not followed
    [line] = said(caplog, "flows.notices")
    assert f"answered {code}" in line


def test_a_receiver_that_is_not_there_is_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("CELLAR_NOTIFY_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}")
        caplog.set_level(logging.DEBUG)
        tell()
    [line] = said(caplog, "flows.notices")
    assert "ConnectionRefusedError" in line
    assert SECRET not in line


def test_a_failure_over_a_file_name_that_is_no_text_is_told(receiver: Receiver) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    notify.failed(
        flow="f", run=None, state="Failed", reason=f"cannot read {name} \u2603", store=f"file:/{name}"
    )
    [told] = receiver.messages
    assert told["reason"] == r"cannot read caf\udce9.txt" + " \u2603"
    assert told["store"] == r"file:/caf\udce9.txt"


def test_a_port_that_speaks_no_http_is_said_not_to_be_reached(
    cellar: "Cellar", monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ssh(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            self.rfile.readline()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ssh) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("CELLAR_NOTIFY_URL", f"http://127.0.0.1:{server.server_address[1]}/{SECRET}")
        code, out, err = cellar("notify", "test")
        server.shutdown()
        thread.join()
    assert (code, out) == (6, "")
    assert "could not be reached (BadStatusLine)" in err
    assert SECRET not in err


def test_a_receiver_that_never_answers_holds_nothing_up(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.silent = True
    monkeypatch.setattr(notify, "_LIMIT_S", 0.2)
    began = time.monotonic()
    tell()
    assert time.monotonic() - began < 2
    assert "took longer than" in caplog.text


@pytest.mark.parametrize("line", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_a_receiver_that_answers_without_end_does_not_hold_the_command(
    cellar: "Cellar", monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    over = threading.Event()

    class Endless(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"" if line else b"HTTP/1.1 200 OK\r\nX-Slow: ")
            with suppress(OSError):
                while not over.wait(0.05):
                    self.wfile.write(line or b"x")

    monkeypatch.setattr(notify, "_LIMIT_S", 0.5)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("CELLAR_NOTIFY_URL", f"http://127.0.0.1:{server.server_address[1]}/{SECRET}")
        code, out, err = cellar("notify", "test")
        over.set()
        server.shutdown()
        thread.join()
    assert (code, out) == (6, "")
    assert "took longer than" in err


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "https:///x",
        "host/x",
        f"https://user:{SECRET}@host/x",
        "http://h/a b",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CELLAR_NOTIFY_URL", address)
    with pytest.raises(SettingsError, match="CELLAR_NOTIFY_URL is no address") as refused:
        load_notifications()
    assert address not in str(refused.value)
    tell()  # in the middle of a run it is too late to refuse
    assert "nobody was told" in caplog.text
    assert address not in caplog.text


def test_a_limit_out_of_range_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLAR_NOTIFY_RECALL", "95")
    with pytest.raises(SettingsError, match="CELLAR_NOTIFY_RECALL is '95'"):
        load_notifications()


LIMITS = Notifications(rejected_share=0.1, recall=0.9)


@pytest.mark.parametrize(
    ("figures", "faults"),
    [
        ({"documents": 10, "rejected": 1, "token_recall": 0.9}, []),
        ({"documents": 10, "rejected": 2, "token_recall": 0.9}, ["2 of 10 documents were rejected"]),
        ({"documents": 10, "rejected": 0, "token_recall": 0.89}, ["token recall 0.8900 is below 0.9"]),
        ({"documents": 0, "rejected": 0}, []),
        (summarise([]), []),  # an update that only drops a partition
    ],
)
def test_a_build_is_degraded_beyond_the_limits(figures: dict[str, Any], faults: list[str]) -> None:
    found = degraded.build_faults(figures, LIMITS)
    assert len(found) == len(faults)
    assert all(text.startswith(start) for text, start in zip(found, faults, strict=True))


def test_an_evaluation_is_degraded_below_the_limit(receiver: Receiver) -> None:
    settings = load_settings(store="file:/srv/store")
    degraded.tell_of_evaluation(settings, "5" * 64, {"retrieval": {"recall_at_1": 0.96}})
    assert receiver.messages == []
    degraded.tell_of_evaluation(settings, "5" * 64, {"retrieval": {"recall_at_1": 0.94}})
    [told] = receiver.messages
    assert (told["event"], told["snapshot"], told["store"]) == ("degraded", "5" * 64, "file:/srv/store")
    assert told["figures"] == {"recall_at_1": 0.94}


def test_a_flow_that_fails_tells_it_once_with_its_reason_and_store(
    prefect_server: str, receiver: Receiver
) -> None:
    def fail() -> None:
        raise InputError("the shards are empty")

    inner = flow(lambda: bind(fail, name="step")(), name="inner")
    outer = flow(lambda settings: inner(), name="outer")

    with pytest.raises(InputError):
        outer(load_settings(store="file:/srv/store"))

    [told] = receiver.messages
    assert (told["event"], told["flow"], told["state"], told["store"]) == (
        "failed", "outer", "Failed", "file:/srv/store",
    )  # fmt: skip
    assert told["reason"] == "InputError: the shards are empty"
    assert len(told["run"]) == 36


def test_what_a_part_found_is_told_of_the_run_that_is_listed(prefect_server: str, receiver: Receiver) -> None:
    from flows.runs.listing import list_runs

    settings = load_settings(store="file:/srv/store")
    found = {"retrieval": {"recall_at_1": 0.5}}
    inner = flow(lambda: degraded.tell_of_evaluation(settings, "5" * 64, found), name="part")
    name = f"outer-{os.getpid()}"
    flow(lambda: inner(), name=name)()

    [told] = receiver.messages
    [listed] = list_runs(flow=name)
    assert (told["event"], told["flow"], told["run"]) == ("degraded", name, listed.id)


@pytest.mark.parametrize(("error", "told"), [(KeyboardInterrupt, 0), (SystemExit, 1)])
def test_a_flow_that_somebody_interrupts_is_no_news(
    prefect_server: str, receiver: Receiver, error: type[BaseException], told: int
) -> None:
    def stop() -> None:
        raise error

    with pytest.raises(error):
        flow(stop, name="stopped")()

    assert [message["state"] for message in receiver.messages] == ["Crashed"] * told


Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cellar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cellar:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        return code, *capsys.readouterr()

    return run


def test_the_address_is_tried_out_by_a_command(
    cellar: Cellar, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = cellar("notify", "test", "--json")
    assert (code, err) == (0, "")
    assert receiver.messages == [json.loads(out)]
    assert receiver.messages[0]["event"] == "test"

    receiver.codes = [404]
    code, out, err = cellar("notify", "test")
    assert (code, out) == (6, "")
    assert "answered 404" in err
    assert SECRET not in err

    monkeypatch.delenv("CELLAR_NOTIFY_URL")
    assert cellar("notify", "test")[0] == 3


def test_what_verify_finds_is_told(cellar: Cellar, receiver: Receiver, tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    build = store.build("b", owner="test")
    with build.writer(unit="u") as writer:
        writer.add(Element("corpus", "one", b"1", media="text/plain"))
        receipt = writer.finish()
    build.commit([receipt], message="one")
    assert cellar("--store", "store", "verify", "--full")[0] == 0
    assert receiver.messages == []

    next((tmp_path / "store" / "packs").rglob("??*/*")).unlink()

    assert cellar("--store", "store", "verify", "--full")[0] == 5
    [told] = receiver.messages
    assert (told["event"], told["flow"], told["figures"]["findings"]) == ("degraded", "verify", 1)
    assert "packs/" in told["reason"]


def test_a_message_that_nobody_takes_is_an_error_only_where_it_was_asked_for(receiver: Receiver) -> None:
    receiver.codes = [500]
    url = load_notifications().url
    assert url is not None
    with pytest.raises(NotDelivered, match="answered 500"):
        notify.deliver({}, url)
