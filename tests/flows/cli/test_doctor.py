"""`cellar doctor` and `cellar init` refuse a server that loses commits, with exit code 3."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lax_proxy import Lax, lax_proxy
from tests.seaweedfs import S3Server
from tests.store.test_tar import tar_of

Cellar = Callable[..., tuple[int, str, str]]


def test_a_folder_is_examined_and_the_result_is_printed(cellar: Cellar, tmp_path: Path) -> None:
    code, out, _ = cellar("doctor", "--store", str(tmp_path / "store"))
    assert code == 0
    assert "ok  create-race" in out
    assert (
        "is fit for a store; 0 warnings; this identity fits the roles reader, worker, committer, collector"
        in out
    )

    code, out, _ = cellar("doctor", "--store", str(tmp_path / "store"), "--json")
    assert code == 0
    assert {"name": "lock", "status": "ok", "sentence": "a lock keeps others out"} in json.loads(out)[
        "checks"
    ]


def test_what_cannot_be_tried_out_is_not_said_to_be_fit(cellar: Cellar, workplace: Path) -> None:
    Path("export.tar").write_bytes(tar_of({"readme": b"hello"}))

    code, out, _ = cellar("doctor", "--store", "export.tar")
    assert code == 0
    assert "export.tar was only looked at: this identity may not write or delete, so nothing is known" in out
    assert "its conditions; this identity fits the roles reader\n" in out
    assert "is fit" not in out

    code, out, _ = cellar("doctor", "--store", "export.tar", "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["tested"]) == (0, False, False)


@pytest.mark.parametrize("command", ["init", "doctor"])
def test_a_file_is_refused(cellar: Cellar, workplace: Path, command: str) -> None:
    Path("file").write_text("hello")
    for place in ("file", "file/below"):
        code, _, errors = cellar(command, "--store", place)
        assert (code, "file is a file, a store needs a folder" in errors) == (3, True)


@pytest.mark.parametrize("command", ["init", "doctor"])
def test_a_server_that_ignores_conditions_is_refused(
    cellar: Cellar, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("store.doctor.conditions.RACERS", 4)
    with lax_proxy(s3_server, Lax(ignores=frozenset({"if-none-match", "if-match"}))) as endpoint:
        for name, value in {**s3_server.environment(), "AWS_ENDPOINT_URL_S3": endpoint}.items():
            monkeypatch.setenv(name, value)
        url = s3_server.url()

        code, out, errors = cellar(command, "--store", url)
        assert code == 3
        assert f"{url} is not fit for a store: a second create of one key is accepted" in errors
        assert cellar("log", "--store", url)[0] == 3  # no store was made
    if command == "doctor":
        assert "fail  create-race" in out
        assert "ok    ranges" in out
