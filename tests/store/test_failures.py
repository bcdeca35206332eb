"""What goes wrong around a store ends in one sentence with the right exit code, and leaks no secret."""

from __future__ import annotations

import errno
import os
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from store import Store
from store.backend import open_backend
from store.backend.local import LocalBackend
from store.backend.s3_errors import translate
from store.errors import (
    AccessDenied,
    BucketMissing,
    CellarError,
    ConfigurationError,
    CredentialsError,
    DiskFull,
    InvalidName,
    InvalidURL,
    NotAStore,
    ReadOnly,
    StorageUnavailable,
    Unreachable,
    UnsupportedFormat,
)
from store.format import seal, unseal
from store.gc import collect
from tests.seaweedfs import S3Server
from tests.store.faulty import Call, Fault, FaultyBackend, ProcessKilled
from tests.store.samples import memory


def assert_is_one_sentence(error: CellarError, *secrets: str) -> None:
    text = str(error)
    assert "\n" not in text
    assert ";" in text or "," in text
    for secret in secrets:
        assert secret not in text


@pytest.mark.parametrize(
    "url", ["", "http://x/y", "s3://", "s3:///x", "file://host/x", "s3://user:pw@bucket/x"]
)
def test_addresses_that_are_no_store_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidURL) as caught:
        Store.open(url)

    assert caught.value.exit_code == 3
    assert_is_one_sentence(caught.value, "pw")


def test_an_empty_place_is_not_a_store(store_url: str) -> None:
    with pytest.raises(NotAStore, match="cellar init") as caught:
        Store.open(store_url)

    assert caught.value.exit_code == 3


def test_a_folder_with_other_files_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")

    with pytest.raises(NotAStore, match="other files"):
        Store.create(str(tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("below", ["", "/inside/it"])
def test_a_file_is_no_place_for_a_store(tmp_path: Path, below: str) -> None:
    (tmp_path / "thesis.tex").write_text("precious")

    with pytest.raises(NotAStore, match=r"thesis\.tex is a file, a store needs a folder") as caught:
        Store.open_or_create(f"{tmp_path}/thesis.tex{below}")

    assert_is_one_sentence(caught.value)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_another_region_is_answered_with_the_variable_that_sets_it() -> None:
    answer = {"Error": {"Code": "PermanentRedirect"}, "ResponseMetadata": {"HTTPStatusCode": 301}}

    error = translate(ClientError(answer, "GetObject"), "read", "a", "s3://bucket", "endpoint")

    assert isinstance(error, ConfigurationError)
    assert "another region (PermanentRedirect); set AWS_DEFAULT_REGION" in str(error)


def test_a_store_of_another_format_is_refused(store: Store, store_url: str) -> None:
    record = unseal(store.backend.read("format.json"), "format.json")
    store.backend.put("format.json", seal({**record, "format": 2}))

    with pytest.raises(UnsupportedFormat, match="format 2") as caught:
        Store.open(store_url)

    assert caught.value.exit_code == 3


def test_keys_never_leave_the_folder(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path / "store")

    for key in ("../x", "a/../../x", "/x", "a//b", ".tmp/x", "a/\0"):
        with pytest.raises(InvalidName):
            backend.put(key, b"x")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("clock", [0.0, 3e8, -3e8])
def test_leftovers_of_killed_writers_are_swept_and_living_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: float
) -> None:
    """Whatever time this process believes it is."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + clock)
    store = Store.create(str(tmp_path / "store"))
    old, young = (tmp_path / "store" / ".tmp" / name for name in ("old", "young"))
    old.write_bytes(b"x")
    young.write_bytes(b"x")
    os.utime(old, (1, 1))

    Store.open(str(tmp_path / "store")).publish([memory(1)], message="sweeps")

    assert [path.name for path in (tmp_path / "store" / ".tmp").iterdir()] == ["young"]
    assert store.verify().ok


def test_a_full_disk_is_reported_and_leaves_nothing_half_visible(small_disk: Path) -> None:
    store = Store.create(str(small_disk / "store"))
    [kept] = store.publish([memory(1)], message="fits")

    with pytest.raises(DiskFull, match="no space") as caught:
        store.publish([memory(2, size=2_000_000)], message="does not fit")

    assert caught.value.exit_code == 6
    assert_is_one_sentence(caught.value)
    assert list((small_disk / "store" / ".tmp").iterdir()) == []
    assert store.verify(full=True).ok
    assert store.read(kept) == memory(1).payload
    store.publish([memory(3)], message="fits again")
    assert len(store.catalog()) == 2


def test_a_read_only_folder_is_readable_and_refuses_writes(small_disk: Path) -> None:
    [ref] = Store.create(str(small_disk / "store")).publish([memory(1)], message="one")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store = Store.open(str(small_disk / "store"))

    with pytest.raises(ReadOnly, match="read-only") as caught:
        store.publish([memory(2)], message="two")

    assert caught.value.exit_code == 6
    assert_is_one_sentence(caught.value)
    assert store.read(ref) == memory(1).payload
    assert store.verify(full=True).ok
    assert collect(store).kept.packs == 1  # to look needs no writing
    with pytest.raises(ReadOnly):
        collect(store, apply=True)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_no_place_for_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*paths: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(ConfigurationError, match="has no hard links") as caught:
        Store.create(str(tmp_path / "store"))

    assert caught.value.exit_code == 3
    assert_is_one_sentence(caught.value)
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


def test_a_folder_that_somebody_closed_is_told_from_a_file_system_without_links(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    store.publish([memory(1)], message="one")
    log = tmp_path / "store" / "log"
    if subprocess.run(["chattr", "+i", str(log)], capture_output=True, check=False).returncode:
        pytest.skip("this file system has no immutable folders, or this user may not make one")
    try:
        with pytest.raises(AccessDenied, match="check the folder's owner and mode"):
            store.publish([memory(2)], message="two")
    finally:
        subprocess.run(["chattr", "-i", str(log)], check=True)

    assert [path.name for path in (tmp_path / "store" / ".tmp").iterdir()] == []


@pytest.mark.parametrize("left", ["nothing", "an empty folder"])
def test_nothing_is_written_where_a_store_is_gone(tmp_path: Path, left: str) -> None:
    root = tmp_path / "store"
    store = Store.create(str(root))
    snapshot = store.pin(store.publish([memory(1)], message="one"), message="one").id
    store.move_head("main", snapshot, expect=None)
    writer = store.build("b", owner="test").writer("unit")
    writer.add(memory(3))
    root.rename(tmp_path / "moved")
    if left == "an empty folder":
        root.mkdir()

    attempts: list[Callable[[], object]] = [
        lambda: store.publish([memory(2)], message="two"),
        lambda: store.build("c", owner="test"),
        writer.finish,
        lambda: store.backend.put("packs/aa/" + "a" * 64, b"orphan"),
        lambda: store.backend.replace("refs/heads/main", b"", token=""),
    ]
    for attempt in attempts:
        with pytest.raises(NotAStore, match="gone or was replaced since it was opened") as caught:
            attempt()
        assert_is_one_sentence(caught.value)

    assert root.exists() == (left == "an empty folder")
    assert not any(root.iterdir() if root.exists() else ())
    if root.exists():
        root.rmdir()
    (tmp_path / "moved").rename(root)
    store.publish([memory(2)], message="two")
    assert store.verify(full=True).ok


@pytest.fixture
def server(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server


def test_an_unreachable_endpoint_is_named(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9") as caught:
        Store.open(server.url())

    assert caught.value.exit_code == 6
    assert_is_one_sentence(caught.value, server.secret_key, server.access_key)


@pytest.mark.parametrize("endpoint", ["http://somebody:hunter2@127.0.0.1:9", "http://somebody:hunter2@[x"])
def test_a_password_in_an_endpoint_is_refused_and_not_shown(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)

    with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL_S3") as caught:
        Store.open(server.url())

    assert caught.value.exit_code == 3
    assert_is_one_sentence(caught.value, "hunter2", "somebody")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_missing_bucket_is_named(server: S3Server) -> None:
    for opening in (Store.open, Store.open_or_create):
        with pytest.raises(BucketMissing, match="no-such-bucket") as caught:
            opening("s3://no-such-bucket/x")
        assert caught.value.exit_code == 3
        assert_is_one_sentence(caught.value, server.secret_key)


@pytest.mark.parametrize(
    "name_and_value",
    [("AWS_SECRET_ACCESS_KEY", "wrong-secret-value"), ("AWS_ACCESS_KEY_ID", "UNKNOWNKEY")],
)
def test_rejected_credentials_are_reported_without_them(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, name_and_value: tuple[str, str]
) -> None:
    monkeypatch.setenv(*name_and_value)

    with pytest.raises(CredentialsError, match="rejects the credentials") as caught:
        Store.open(server.url())

    assert caught.value.exit_code == 3
    assert_is_one_sentence(caught.value, name_and_value[1], server.secret_key, server.access_key)


@pytest.mark.parametrize("profile", [None, "no-such-profile"])
def test_missing_credentials_are_reported(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str | None
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)

    with pytest.raises(CredentialsError, match="AWS_PROFILE") as caught:
        Store.open(server.url())

    assert_is_one_sentence(caught.value)


def test_a_reader_reads_and_is_denied_writing(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.url()
    [ref] = Store.create(url).publish([memory(1)], message="one")
    for name, value in server.environment(reader=True).items():
        monkeypatch.setenv(name, value)
    store = Store.open(url)

    with pytest.raises(AccessDenied, match="access is denied") as caught:
        store.publish([memory(2)], message="two")

    assert caught.value.exit_code == 6
    assert_is_one_sentence(caught.value, server.reader_secret_key, server.reader_access_key)
    assert store.read(ref) == memory(1).payload
    assert store.verify(full=True).ok


def test_a_nonsense_endpoint_is_a_configuration_error(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "no scheme at all")

    with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL_S3") as caught:
        Store.open(server.url())

    assert_is_one_sentence(caught.value, "no scheme")


def test_errors_are_grouped_by_what_to_do_next() -> None:
    codes = {StorageUnavailable: 6, ConfigurationError: 3, CellarError: 1}

    for family, code in codes.items():
        assert family.exit_code == code
    assert issubclass(DiskFull, StorageUnavailable)
    assert issubclass(NotAStore, ConfigurationError)


def test_a_pin_that_reads_the_record_of_a_killed_one_damaged_writes_an_equal_one(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    refs = Store.create(url).publish([memory(number) for number in range(3)], message="three")

    def kills(call: Call) -> Fault | None:
        return Fault.KILLED_AFTER if call.kind == "create" and call.key.startswith("snapshots/") else None

    with pytest.raises(ProcessKilled):
        Store(FaultyBackend(open_backend(url), kills)).pin(refs, message="killed")
    [record] = (tmp_path / "store" / "snapshots").glob("*.json")
    before = record.read_bytes()
    flips = iter([Fault.FLIPPED])

    def flips_once(call: Call) -> Fault | None:
        return next(flips, None) if call.kind == "read" and call.key.endswith(record.name) else None

    pinned = Store(FaultyBackend(open_backend(url), flips_once)).pin(refs, message="again")

    assert next(flips, None) is None, "nothing was damaged"
    assert record.name == f"{pinned.id}.json"
    assert record.read_bytes() == before
    assert Store.open(url).verify(full=True).ok
