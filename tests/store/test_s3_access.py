"""How a store in a bucket is reached: credentials by profile, environment or role, endpoint, prefix."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from store import Store
from store.errors import ConfigurationError, CredentialsError, StorageUnavailable
from tests.seaweedfs import S3Server
from tests.store.samples import memory
from tests.tls_front import tls_front

_TOKEN = "the-token-of-this-container"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials and no endpoint from outside."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def works(url: str) -> None:
    """A store can be made, written and read there."""
    refs = Store.create(url).publish([memory(1)], message="one")
    assert Store.open(url).read(refs[0])


def test_a_profile_holds_keys_region_and_endpoint(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(
        f"[profile cellar]\nregion = us-east-1\nendpoint_url = {s3_server.endpoint}\n"
    )
    (tmp_path / "credentials").write_text(
        f"[cellar]\naws_access_key_id = {s3_server.access_key}\n"
        f"aws_secret_access_key = {s3_server.secret_key}\n"
    )
    with pytest.raises(CredentialsError, match="AWS_PROFILE"):
        Store.create(s3_server.url())
    monkeypatch.setenv("AWS_PROFILE", "cellar")

    works(s3_server.url())


def test_a_profile_that_does_not_exist_is_named_as_a_matter_of_credentials(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    with pytest.raises(ConfigurationError, match="ProfileNotFound"):
        Store.create(s3_server.url())


def test_the_environment_holds_keys_and_endpoint(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)

    works(s3_server.url())


def test_a_role_of_the_container_hands_out_keys(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with role_server(s3_server) as address:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", _TOKEN)

        works(s3_server.url())


def test_several_stores_share_a_bucket_under_prefixes(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    outer = s3_server.url()

    works(f"{outer}/team/one")
    works(f"{outer}/team/two")

    assert len(Store.open(f"{outer}/team/one").catalog()) == 1


def test_an_authority_of_one_s_own_is_trusted_if_it_is_named(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    with tls_front(s3_server, tmp_path) as front:
        for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
            monkeypatch.setenv(name, front.endpoint)
        with pytest.raises(StorageUnavailable, match="not trusted here; set AWS_CA_BUNDLE"):
            Store.create(s3_server.url())
        monkeypatch.setenv("AWS_CA_BUNDLE", str(front.authority))

        works(s3_server.url())


@contextmanager
def role_server(server: S3Server) -> Iterator[str]:
    """What a container of a cluster asks for the keys of its role, with the token that it was given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers.get("Authorization") == _TOKEN
            keys = {
                "AccessKeyId": server.access_key,
                "SecretAccessKey": server.secret_key,
                "Token": "",  # keys of this server need none
                "Expiration": (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            body = json.dumps(keys if allowed else {}).encode()
            self.send_response(200 if allowed else 403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/role"
        http.shutdown()
