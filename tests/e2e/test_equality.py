"""Equal inputs give equal versions: in other processes, in another store, on another kind of storage."""

import typing

import pytest

from flows.pins import Stage
from store import Store
from tests.e2e.workplace import Workplace
from tests.seaweedfs import S3Server


@pytest.mark.slow
@pytest.mark.s3
def test_a_chain_in_a_bucket_gives_the_versions_and_snapshots_of_one_in_a_folder(
    finished: Workplace,
    fresh: Workplace,
    s3_server: S3Server,
    with_server: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = s3_server.url()
    there = s3_server.environment()

    end = fresh.cellar("demo", "--store", url, "--quiet", **there, **with_server)

    assert (end.code, end.err) == (0, "")
    for stage in typing.get_args(Stage):
        assert fresh.pin(stage) == finished.pin(stage)
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    store = Store.open(url)
    assert store.verify(full=True).ok
    assert store.head("docs") == finished.store.head("docs")
    assert [row.version for row in store.catalog().rows()] == [
        row.version for row in finished.store.catalog().rows()
    ]
