"""No secret that a command was given is found afterwards, on the terminal, in logs, records or objects."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from flows.cli import main
from store import Store
from store.backend import open_backend
from tests.e2e.workplace import FOREIGN
from tests.flows.notices.receiver import SECRET as NOTIFICATION
from tests.flows.notices.receiver import Receiver, receiving
from tests.seaweedfs import S3Server

WRONG_SECRET = "wrongSecret/ZyXw+987Q"
SESSION_TOKEN = "sessionToken/AbCd+123Q"
PASSPHRASE = "passphrase-KlMn-456Q"
WRONG_PASSPHRASE = "wrong-passphrase-OpQr-789Q"
USER_IN_URL, PASSWORD_IN_URL = "userInUrl-StUv-012Q", "passwordInUrl-WxYz-345Q"
QUERY = "signatureInQuery-EfGh-678Q"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


@dataclass
class Terminal:
    """Runs commands in this process and keeps all that they printed and logged."""

    server: S3Server
    folder: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    credentials: dict[str, str]
    said: list[str] = field(default_factory=list)

    def __call__(self, *arguments: object, code: int = 0, **environment: str) -> None:
        """Run a command, which must end with that code; it shows the traceback of an error."""
        with self.patch.context() as patch:
            for name, value in {**self.credentials, **environment}.items():
                patch.setenv(name, value)
            ended = main(["--debug", *map(str, arguments)])
        self.said += self.capsys.readouterr()
        assert ended == code, (arguments, self.said[-2:])


@pytest.fixture
def terminal(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Terminal(s3_server, tmp_path, monkeypatch, capsys, s3_server.user(EVERYTHING))


def work(terminal: Terminal, url: str, other: str) -> None:
    """Build, sign, copy, export, import and examine: all that is given a secret, and what is recorded."""
    (terminal.folder / "texts").mkdir()
    for number in range(3):
        (terminal.folder / "texts" / f"{number}.txt").write_text(f"Document {number} says a few words. " * 9)
    terminal("--store", url, "init")
    terminal("--store", url, "corpus", "build", "--folder", "texts", "--name", "t")
    terminal("--store", url, "snapshot", "pin", "corpus/*", "--tag", "v1")
    terminal("key", "generate", "key", CELLAR_KEY_PASSPHRASE=PASSPHRASE)
    terminal("--store", url, "snapshot", "sign", "v1", "--key", "key", CELLAR_KEY_PASSPHRASE=PASSPHRASE)
    (terminal.folder / "key").chmod(0o644)  # which is warned of
    terminal("--store", url, "snapshot", "sign", "v1", "--key", "key", CELLAR_KEY_PASSPHRASE=PASSPHRASE)
    terminal("--store", url, "snapshot", "copy", "v1", "--to", other)
    terminal("--store", url, "snapshot", "export", "v1", "x.tar")
    terminal("--store", "local", "snapshot", "import", "x.tar", "--key", "key.pub")
    terminal("--store", "local", "log", "--json")
    terminal("--store", other, "snapshot", "verify", "v1", "--key", "key.pub", code=4)
    terminal("--store", other, "gc")
    terminal.patch.setattr("store.doctor.conditions.ROUNDS", 1)
    terminal("--store", other, "doctor")
    terminal("--store", url, "verify", "--full")
    terminal("notify", "test")


def fail(terminal: Terminal, url: str) -> None:
    """End in every way that a secret can end a command."""
    wrong = {"AWS_SECRET_ACCESS_KEY": WRONG_SECRET}
    terminal("--store", url, "log", code=3, **wrong)
    terminal("--store", url, "doctor", code=3, **wrong)
    pinned = [commit.snapshot for commit in Store.open(str(terminal.folder / "local")).log()][-1]
    terminal("--store", "local", "snapshot", "copy", pinned, "--to", url, code=3, **wrong)
    terminal("--store", url, "log", code=3, AWS_SESSION_TOKEN=SESSION_TOKEN, **wrong)
    signing = ("--store", url, "snapshot", "sign", "v1", "--key")
    terminal(*signing, "key", code=2, CELLAR_KEY_PASSPHRASE=WRONG_PASSPHRASE)
    terminal(*signing, "key.pub", code=2, CELLAR_KEY_PASSPHRASE=PASSPHRASE)
    terminal("--store", url, "snapshot", "verify", "v1", "--key", "key", code=2)
    with_password = f"{USER_IN_URL}:{PASSWORD_IN_URL}@"
    for place in (
        f"s3://{with_password}bucket/x",
        f"https://{with_password}host/x?sig={QUERY}",
        f"s3://b/x?{QUERY}",
    ):
        terminal("--store", place, "log", code=3)
        terminal("--store", "local", "snapshot", "copy", pinned, "--to", place, code=3)
        terminal("--store", "local", "snapshot", "import", place, code=2)
        terminal("log", code=3, CELLAR_STORE=place)
    host = terminal.server.endpoint.removeprefix("http://")
    for endpoint in (
        f"http://{with_password}{host}",
        f"http://{with_password}127.0.0.1:9",
        f"http://{with_password}[x",
    ):
        terminal("--store", url, "log", code=3, AWS_ENDPOINT_URL_S3=endpoint)
    terminal("notify", "test", code=6, CELLAR_NOTIFY_URL=f"http://127.0.0.1:9/{NOTIFICATION}")
    terminal("notify", "test", code=3, CELLAR_NOTIFY_URL=f"https://{NOTIFICATION}@host/x")


def encoded(secret: str) -> Iterator[bytes]:
    """The forms in which a text could have been left."""
    raw = secret.encode()
    yield from (raw, raw.hex().encode(), quote(secret, safe="").encode())
    for shift in range(3):  # base64 of it somewhere inside a longer text
        yield base64.b64encode(b"\0" * shift + raw)[4:-4]
    yield json.dumps(secret)[1:-1].encode()


def everything(terminal: Terminal, urls: list[str]) -> Iterator[tuple[str, bytes]]:
    """All that is left: output, files, objects, and the rows in compressed tables."""
    yield from ((f"output {number}", text.encode()) for number, text in enumerate(terminal.said))
    for path in sorted(terminal.folder.rglob("*")):
        if path.is_file():
            yield str(path), path.read_bytes()
            yield f"name of {path}", str(path).encode()
    for url in [*urls, str(terminal.folder / "local"), str(terminal.folder / "x.tar")]:
        backend = open_backend(url)
        for item in backend.list(""):
            yield f"{url} {item.key}", item.key.encode() + b"\n" + backend.read(item.key)
        yield f"rows of {url}", repr(Store.open(url).catalog().rows()).encode()
        yield f"log of {url}", repr(list(Store.open(url).log())).encode()


@pytest.fixture
def receiver(terminal: Terminal) -> Iterator[Receiver]:
    with receiving() as one:
        terminal.credentials["CELLAR_NOTIFY_URL"] = one.url
        yield one


@pytest.mark.s3
def test_no_secret_is_found_afterwards(
    terminal: Terminal, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    url, other = terminal.server.url(), terminal.server.url()
    caplog.set_level(logging.INFO)
    for room in ("store", "flows", "tasks"):
        caplog.set_level(logging.DEBUG, room)

    work(terminal, url, other)
    fail(terminal, url)

    terminal.said.append(caplog.text)
    assert "others can read the private key" in caplog.text
    assert sum("Traceback" in text for text in terminal.said) > 10
    private = (terminal.folder / "key").read_text()
    lines: list[str] = private.splitlines()[1:-1]
    (terminal.folder / "key").unlink()  # where it belongs
    for name, value in terminal.credentials.items():
        terminal.patch.setenv(name, value)
    secrets = [terminal.credentials["AWS_SECRET_ACCESS_KEY"], terminal.server.secret_key, WRONG_SECRET]
    secrets += [SESSION_TOKEN, PASSPHRASE, WRONG_PASSPHRASE, USER_IN_URL, PASSWORD_IN_URL, QUERY, *lines]
    secrets.append(NOTIFICATION)
    assert [message["event"] for message in receiver.messages] == ["test"]
    forms = {form: secret for secret in secrets for form in encoded(secret)}
    left = everything(terminal, [url, other])
    found = [(place, forms[form]) for place, content in left for form in forms if form in content]
    assert found == []


def test_the_search_would_find_one() -> None:
    check: Callable[[bytes], bool] = lambda content: any(form in content for form in encoded(PASSPHRASE))  # noqa: E731

    assert check(f"x{PASSPHRASE}y".encode())
    assert all(check(b"--" + base64.b64encode(b"k" * n + PASSPHRASE.encode() + b"!!")) for n in range(6))
    assert check(quote(f"a {PASSPHRASE}").encode())
    assert not check(b"nothing")
