"""A flow holds the snapshot that it works with, and works without where it may only read."""

import logging
from pathlib import Path

import pytest

from flows.held import held
from store import Store
from store.errors import SnapshotNotFound
from tests.seaweedfs import S3Server
from tests.store.samples import memory


def test_a_snapshot_is_held_while_a_flow_works_with_it(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    snapshot = store.pin(store.publish([memory(1)], message="one"), message="one").id

    with held(store, snapshot, purpose="evaluation") as renew:
        [hold] = store.holds()
        assert (hold.snapshot, hold.owner) == (snapshot, "evaluation")
        with held(store, snapshot, purpose="evaluation"):
            assert len(store.holds()) == 2
        renew()
        assert store.holds() == [hold]
    assert store.holds() == []

    with pytest.raises(ZeroDivisionError), held(store, snapshot, purpose="evaluation"):
        raise ZeroDivisionError
    assert store.holds() == []
    with pytest.raises(SnapshotNotFound), held(store, "a" * 64, purpose="evaluation"):
        pytest.fail("there is nothing to work with")


def test_a_hold_that_was_removed_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(str(tmp_path))
    snapshot = store.pin(store.publish([memory(1)], message="one"), message="one").id
    elapsed = 0.0
    monkeypatch.setattr("store.elapsed.seconds", lambda: elapsed)

    with held(store, snapshot, purpose="evaluation") as renew:
        [hold] = store.holds()
        store.release_hold(hold.name)
        elapsed = 6 * 3600.0
        renew()
        assert [again.name for again in store.holds()] == [hold.name]
    assert store.holds() == []


def test_whoever_may_only_read_works_without_a_hold(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    store = Store.create(s3_server.url())
    snapshot = store.pin(store.publish([memory(1)], message="one"), message="one").id
    for name, value in s3_server.environment(reader=True).items():
        monkeypatch.setenv(name, value)
    reader = Store.open(store.url)

    with caplog.at_level(logging.WARNING), held(reader, snapshot, purpose="evaluation") as renew:
        renew()
        assert reader.snapshot(snapshot).count == 1

    assert "read without a hold" in caplog.text
    assert store.holds() == []
