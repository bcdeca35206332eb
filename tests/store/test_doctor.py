"""`doctor` finds a storage fit or unfit, says why, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from store import Store
from store.backend import Backend, Body, open_backend
from store.backend.local import LocalBackend
from store.backend.s3 import S3Backend
from store.doctor import DoctorReport, diagnose
from store.doctor.bucket import bucket_checks
from store.doctor.clock import clock_check
from store.doctor.ground import cleared_ground
from store.doctor.permissions import roles_of
from store.errors import ConfigurationError, NotAStore, ReadOnly
from tests.lax_proxy import Lax, lax_proxy
from tests.seaweedfs import S3Server

CONDITIONS = {"create", "create-race", "create-race-two", "replace", "replace-absent", "replace-race"}


@pytest.fixture(autouse=True)
def short_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """SeaweedFS lets racers for one key wait for seconds: race often only where races are fast."""
    monkeypatch.setattr("store.doctor.conditions._LONG_S", 0.5)


def statuses(report: DoctorReport) -> dict[str, str]:
    return {check.name: check.status for check in report.checks}


def names(report: DoctorReport, status: str) -> set[str]:
    return {name for name, found in statuses(report).items() if found == status}


@contextmanager
def through_proxy(server: S3Server, lax: Lax, patch: pytest.MonkeyPatch) -> Iterator[Backend]:
    with lax_proxy(server, lax) as endpoint:
        for name, value in {**server.environment(), "AWS_ENDPOINT_URL_S3": endpoint}.items():
            patch.setenv(name, value)
        yield open_backend(server.url())


def test_a_storage_that_keeps_its_promises_is_fit_and_left_as_it_was(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.doctor.conditions.RACERS", 4)
    backend.put("doctored", b"not under doctor/")
    report = diagnose(backend)

    assert report.ok
    assert report.tested
    assert len(statuses(report)) == len(report.checks)
    assert names(report, "fail") == set()
    assert set(statuses(report)) >= CONDITIONS
    assert report.roles == ("reader", "worker", "committer", "collector")
    assert [item.key for item in backend.list("")] == ["doctored"]
    report.refuse_if_unfit()


def test_a_folder_that_did_not_exist_does_not_exist_afterwards(tmp_path: Path) -> None:
    report = diagnose(open_backend(str(tmp_path / "not" / "yet")))

    assert report.ok
    assert {"hard-links", "fsync", "rename", "lock"} <= names(report, "ok")
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_is_examined_without_touching_it(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    before = [item.key for item in store.backend.list("")]

    assert diagnose(store.backend).ok
    assert [item.key for item in store.backend.list("")] == before
    assert store.verify().ok


@pytest.mark.parametrize(
    ("lax", "failing"),
    [
        (Lax(ignores=frozenset({"if-none-match"})), {"create", "create-race", "create-race-two"}),
        (Lax(ignores=frozenset({"if-match"})), {"replace", "replace-absent", "replace-race"}),
        (Lax(looks_first=True), {"create-race", "create-race-two", "replace-race"}),
    ],
    ids=["ignores-if-none-match", "ignores-if-match", "not-in-a-race"],
)
def test_a_server_that_does_not_enforce_conditions_is_refused(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, lax: Lax, failing: set[str]
) -> None:
    monkeypatch.setattr("store.doctor.conditions.RACERS", 16 if lax.looks_first else 4)
    with through_proxy(s3_server, lax, monkeypatch) as backend:
        report = diagnose(backend)
        with pytest.raises(ConfigurationError, match="is not fit for a store"):
            report.refuse_if_unfit()
        with pytest.raises(ConfigurationError, match="is not fit for a store"):
            Store.create(backend.url)

        assert names(report, "fail") == failing
        assert report.roles == ()
        assert list(backend.list("")) == []


@pytest.mark.parametrize(
    ("denies", "roles"),
    [
        ("GET", []),
        ("PUT|DELETE", ["reader"]),
        ("PUT .*/(doctor|index|log|snapshots|refs|gc)/|DELETE", ["reader", "worker"]),
        ("PUT .*/refs/heads/|DELETE .*/packs/", ["reader", "worker"]),
        ("PUT .*/gc/", ["reader", "worker", "committer"]),
        ("GET .*/packs/|PUT .*/(packs|builds)/", ["collector"]),
        ("PUT .*/doctor/", ["reader", "worker", "committer", "collector"]),
    ],
)
def test_the_roles_are_those_that_the_permissions_fit(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, denies: str, roles: list[str]
) -> None:
    with through_proxy(s3_server, Lax(denies=denies), monkeypatch) as backend:
        assert list(roles_of(backend)) == roles


def test_what_an_identity_may_not_do_is_a_warning_and_said(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment(reader=True).items():
        monkeypatch.setenv(name, value)

    report = diagnose(open_backend(s3_server.url()))

    assert (report.ok, report.tested) == (False, False)
    assert "was only looked at: this identity may not write or delete" in report.verdict
    report.refuse_if_unfit()
    assert report.roles == ("reader",)
    assert names(report, "ok") == {"list", "read"}
    assert names(report, "warn") == {"write", "overwrite", "delete", "conditions"}


class ReadOnlyFolder(LocalBackend):
    """A folder on a disk that is mounted for reading, where deleting what is not there fails in no way."""

    def put(self, key: str, body: Body) -> None:
        raise ReadOnly(f"cannot write {key}")


def test_a_folder_that_cannot_be_written_is_only_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("os.access", lambda path, mode: mode & os.W_OK == 0)
    monkeypatch.setattr(Path, "unlink", refused)

    report = diagnose(ReadOnlyFolder(tmp_path))

    assert (report.ok, report.tested, report.roles) == (False, False, ("reader",))
    assert names(report, "warn") == {"write", "overwrite", "delete", "conditions"}


@pytest.mark.parametrize("below", ["", "below", "far/below"])
def test_a_file_is_no_place_for_a_store(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("hello")

    with pytest.raises(NotAStore, match="file is a file, a store needs a folder"):
        diagnose(LocalBackend(tmp_path / "file" / below))

    assert (tmp_path / "file").read_text() == "hello"


def test_missing_upload_checks_and_a_wrong_clock_are_warnings(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lax = Lax(ignores=frozenset({"x-amz-checksum-sha256"}), shift=timedelta(minutes=-6))
    with through_proxy(s3_server, lax, monkeypatch) as backend:
        assert isinstance(backend, S3Backend)
        with cleared_ground(backend) as ground:
            clock = clock_check(ground, backend)
            found = {check.name: check.status for check in bucket_checks(backend, ground)}

    assert clock.status == "warn"
    assert re.search(r"clock is 3\d\d s behind this machine's", clock.sentence)
    assert found == {"checksum": "warn", "multipart": "ok", "multipart-leftovers": "ok", "versions": "ok"}
