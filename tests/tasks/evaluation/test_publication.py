"""Evaluations in a store: published once with their tables, found by recipe, and the newest of a subject."""

from pathlib import Path
from typing import Any

import pytest

from store import Element, Ref, Store
from tasks.errors import BadPayload
from tasks.evaluation import Table, find_evaluation, newest_evaluation, publish_evaluation
from tasks.evaluation.publication import JSON_MEDIA, TABLE_MEDIA

TABLES = {"samples": Table(b"two rows", 2, "t.samples/1"), "pairs": Table(b"no row", 0, "t.pairs/1")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path}/store")


def published(store: Store, recipe: str, provenance: dict[str, Any], value: int = 1) -> Ref:
    return publish_evaluation(
        store,
        "trial",
        {"value": value},
        TABLES,
        recipe=recipe,
        requires=(),
        provenance=provenance,
        costs={"seconds": 2.5},
        message="try",
    ).summary_ref


def test_summary_and_tables_are_one_commit_and_found_by_the_recipe(store: Store) -> None:
    before = store.tip().sequence

    ref = published(store, "r1", {"subject": "skills"})

    assert store.tip().sequence == before + 1
    found = find_evaluation(store, "r1")
    assert found is not None
    assert (found.summary_ref, found.summary, found.costs) == (ref, {"value": 1}, {"seconds": 2.5})
    assert found.reused
    assert store.read(found.samples_ref) == b"two rows"
    rows = {row.name: row for row in store.catalog().rows("evaluation")}
    assert set(rows) == {"evaluation/trial", "evaluation/trial/samples", "evaluation/trial/pairs"}
    assert rows["evaluation/trial"].provenance["pairs"] == str(rows["evaluation/trial/pairs"].ref)
    assert {row.version for name, row in rows.items() if name != "evaluation/trial"} == set(
        rows["evaluation/trial"].requires
    )
    assert rows["evaluation/trial/samples"].media == TABLE_MEDIA
    assert find_evaluation(store, "r2") is None


def test_the_newest_of_a_subject_is_the_one_of_the_latest_commit(store: Store) -> None:
    assert newest_evaluation(store, "addressing") is None
    published(store, "r1", {"subject": "addressing", "snapshot": "a"}, 1)
    published(store, "r2", {"subject": "addressing", "snapshot": "b"}, 2)
    published(store, "r3", {"subject": "skills", "snapshot": "a"}, 3)
    latest = published(store, "r4", {"subject": "addressing", "snapshot": "a"}, 4)

    found = newest_evaluation(store, "addressing", snapshot="a")

    assert found is not None
    assert (found[0].ref, found[1]) == (latest, {"value": 4})
    assert newest_evaluation(store, "addressing", snapshot="c") is None
    other = newest_evaluation(store, "addressing", snapshot="b")
    assert other is not None
    assert other[1] == {"value": 2}


@pytest.mark.parametrize("payload", [b"[]", b"7", b"\xff", b"", b"[" * 99_999])
def test_a_summary_that_is_no_object_is_refused(store: Store, payload: bytes) -> None:
    forged = Element("evaluation", "trial", payload, media=JSON_MEDIA, provenance={"subject": "questions"})
    store.publish([forged], message="forged")

    with pytest.raises(BadPayload, match="cellar eval run questions"):
        newest_evaluation(store, "questions")


@pytest.mark.parametrize(
    ("kind", "payload", "samples"),
    [
        ("evaluation", b"{}", None),
        ("evaluation", b"{}", 7),
        ("evaluation", b"{}", "evaluation/trial/samples"),
        ("evaluation", b"[]", f"evaluation/trial/samples@{'ab' * 32}"),
        ("evaluation", b"{", f"evaluation/trial/samples@{'ab' * 32}"),
        ("skill", b"{}", f"evaluation/trial/samples@{'ab' * 32}"),
    ],
)
def test_what_only_says_that_it_is_an_evaluation_of_a_recipe_is_refused(
    store: Store, kind: str, payload: bytes, samples: object
) -> None:
    said = {"recipe": "r1"} | ({} if samples is None else {"samples": samples})
    store.publish([Element(kind, "trial", payload, media=JSON_MEDIA, provenance=said)], message="forged")

    with pytest.raises(BadPayload, match="no summary with samples; use a store that you trust"):
        find_evaluation(store, "r1")
