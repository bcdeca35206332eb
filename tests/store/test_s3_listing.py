"""Listings of servers that cut pages in other places than the one of the tests does, by the real client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from store.backend.s3 import S3Backend
from store.errors import ConfigurationError


@dataclass(frozen=True)
class Page:
    """One answer; `token` says where the next one begins, "" that this is the last unless it is `cut`."""

    keys: tuple[str, ...] = ()
    token: str = ""
    cut: bool = False

    def xml(self) -> str:
        cut = self.cut or bool(self.token)
        token = f"<NextContinuationToken>{self.token}</NextContinuationToken>" if self.token else ""
        return (
            f"<ListBucketResult><IsTruncated>{str(cut).lower()}</IsTruncated>"
            f"<KeyCount>{len(self.keys)}</KeyCount>{token}{''.join(map(_entry, self.keys))}"
            "</ListBucketResult>"
        )


@dataclass
class Lister:
    """A server that knows nothing but pages, by the token or key that they are asked with."""

    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, query: dict[str, str]) -> str:
        self.asked.append(query)
        assert len(self.asked) < 10, "it asks for ever"
        return self.pages[query.get("continuation-token", query.get("start-after", ""))].xml()


@pytest.fixture
def lister(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lister]:
    lister = Lister()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = lister.answer(dict(parse_qsl(urlsplit(self.path).query))).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        yield lister
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def listed(after: str = "") -> list[str]:
    return [item.key for item in S3Backend("bucket", "cellar").list("pins/", after=after)]


def test_a_listing_goes_on_after_pages_without_keys(lister: Lister) -> None:
    """S3 may cut a page before the first key that matches: what comes later would be taken for absent."""
    lister.pages = {
        "cellar/pins/0": Page(token="one"),
        "one": Page(token="two"),
        "two": Page(("cellar/pins/a",), token="three"),
        "three": Page(token="four"),
        "four": Page(("cellar/pins/b", "cellar/pins/c")),
    }

    assert listed(after="pins/0") == ["pins/a", "pins/b", "pins/c"]
    assert [query.get("continuation-token", "") for query in lister.asked] == [
        *("", "one", "two", "three", "four")
    ]
    assert [query.get("start-after") for query in lister.asked] == ["cellar/pins/0", *[None] * 4]
    assert [query["max-keys"] for query in lister.asked] == ["16", *["1000"] * 4]


def test_a_server_without_tokens_is_asked_from_the_last_key_on(lister: Lister) -> None:
    lister.pages = {"": Page(("cellar/pins/a",), cut=True), "cellar/pins/a": Page(("cellar/pins/b",))}

    assert listed() == ["pins/a", "pins/b"]


@pytest.mark.parametrize(
    "pages",
    [
        {"": Page(cut=True)},
        {"": Page(token="one"), "one": Page(token="one")},
        {"": Page(token="one"), "one": Page(token="two"), "two": Page(token="one")},
        {"": Page(("cellar/pins/a",), cut=True), "cellar/pins/a": Page(("cellar/pins/a",), cut=True)},
    ],
    ids=["no way on", "the same token", "in a circle", "the same key"],
)
def test_a_listing_that_cannot_be_complete_is_refused(lister: Lister, pages: dict[str, Page]) -> None:
    lister.pages = pages

    with pytest.raises(ConfigurationError, match="does not speak S3"):
        listed()


def _entry(key: str) -> str:
    return (
        f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        "</Contents>"
    )
