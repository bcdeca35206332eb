"""The flows of a schedule: JSON parameters in, store and work directory from the environment."""

from pathlib import Path

import pytest
from prefect.exceptions import FailedRun

from flows import scheduled
from flows.promoting.evaluations import unevaluated
from flows.runs.details import Details, details_of
from flows.runs.listing import find_run, list_runs
from store import Element, Store
from store.errors import ElementNotFound, IntegrityError, NotAStore, SnapshotNotFound
from tests.store.samples import memory


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_server: str) -> Store:
    """Three packs, all of them in the snapshot of a head."""
    monkeypatch.setenv("CELLAR_STORE", f"file:{tmp_path / 'store'}")
    monkeypatch.setenv("CELLAR_WORK_DIR", str(tmp_path / "work"))
    monkeypatch.chdir(tmp_path)
    store = Store.create(f"file:{tmp_path / 'store'}")
    refs = [ref for number in range(3) for ref in store.publish([memory(number)], message=str(number))]
    store.move_head("docs", store.pin(refs, message="all").id, expect=None)
    return store


def last(flow: str) -> Details:
    return details_of(find_run(list_runs(flow=flow, limit=1)[0].id))


def test_verification_goes_on_where_the_last_run_stopped(store: Store) -> None:
    pieces = [scheduled.verify(max_seconds=1e-6) for _ in range(3)]
    assert [piece["packs_before"] for piece in pieces] == [0, 1, 2]
    assert [piece["complete"] for piece in pieces] == [False, False, True]


def test_a_mistyped_store_is_no_new_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_STORE", f"file:{tmp_path / 'stoer'}")
    for run in (scheduled.update, scheduled.build):
        with pytest.raises((NotAStore, FailedRun), match=r"there is no store at .* `cellar init`"):
            run(overrides=["corpus.reader=folder", f"corpus.path={tmp_path}"])
    assert not (tmp_path / "stoer").exists()


def test_a_finding_fails_the_run_and_goes_with_it_as_a_table(store: Store, tmp_path: Path) -> None:
    pack = min((tmp_path / "store" / "packs").rglob("*/*"))
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(data)

    with pytest.raises((IntegrityError, FailedRun), match="1 finding in file:"):
        scheduled.verify()

    found = last("verify")
    assert found.run.state == "Failed"
    assert found.run.reason is not None
    assert found.run.reason.startswith("1 finding in file:")
    [table] = [artifact for artifact in found.artifacts if artifact["key"] == "verify-findings"]
    assert pack.name in table["data"][0]["key"]


def test_the_dry_run_of_collection_says_what_would_go_and_changes_nothing(store: Store) -> None:
    store.pin([row.ref for row in store.catalog().rows("memory")][:1], message="nobody names it")
    before = store.tip()

    amounts = {row["what"]: row for row in scheduled.gc(retain_days=0.0)["amounts"]}

    assert amounts["condemned"]["snapshots"] == 1
    assert amounts["kept"]["snapshots"] == 1
    assert store.tip() == before
    [table] = last("gc").artifacts
    assert table["key"] == "gc-dry-run"
    assert {row["what"]: row for row in table["data"]} == amounts


def test_snapshots_that_heads_pointed_to_wait_for_their_evaluation(store: Store) -> None:
    [first] = store.heads().values()
    memories = [row.ref for row in store.catalog().rows("memory")]
    second = store.pin(memories[:2], message="fewer").id
    store.move_head("docs", second, expect=first)
    store.pin(memories[:1], message="no head points here")
    other = store.publish([Element("corpus", "notes", b"no memories", media="text/plain")], message="other")
    store.move_head("notes", store.pin(other, message="other").id, expect=None)

    assert unevaluated(store, "attachment") == [second, first]
    assert unevaluated(store, "attachment", ["notes"]) == []
    with pytest.raises(SnapshotNotFound, match="there is no head nowhere"):
        unevaluated(store, "attachment", ["nowhere"])

    record = Element(
        "evaluation", "attachment", b"{}", media="application/json", provenance={"snapshot": second}
    )
    store.publish([record], message="evaluated")
    assert unevaluated(store, "attachment") == [first]
    assert unevaluated(store, "another") == [second, first]


def test_a_snapshot_whose_evaluation_fails_keeps_none_of_the_others_from_theirs(store: Store) -> None:
    [first] = store.heads().values()
    memories = [row.ref for row in store.catalog().rows("memory")]
    newest = store.pin(memories[:2], message="fewer").id
    store.move_head("docs", newest, expect=first)

    tried = []
    for _ in range(3):
        with pytest.raises(ElementNotFound, match="holds no index"):
            scheduled.evaluate_new(limit=1)
        [run] = list_runs(flow="evaluate-snapshot", parts=True, limit=1)
        tried.append(details_of(find_run(run.id)).parameters["snapshot"])

    assert tried == [newest, first, newest]


def test_parameters_and_settings_of_a_run_are_shown_as_they_were_resolved(
    store: Store, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="texts"):
        scheduled.update(head="new", overrides=["corpus.reader=folder", f"corpus.path={tmp_path / 'texts'}"])

    found = last("update")
    assert found.parameters["overrides"][0] == "corpus.reader=folder"
    assert found.params is not None
    assert found.params["corpus"]["path"] == str(tmp_path / "texts")
    assert found.settings is not None
    assert found.settings["store"] == f"file:{tmp_path / 'store'}"
    assert "update-memories" in {part.flow for part in found.parts}
