"""What else was evaluated joins a summary where it is of the same snapshot and core."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.report.beside import EDITED, evaluated_beside
from store import Ref, Row, Store
from tasks.errors import BadPayload
from tasks.evaluation import Condition, Table, encode_samples, publish_evaluation
from tests.tasks.evaluation.test_statistics import sample

MADE_FROM = {"snapshot": "5" * 64, "core": "core/assembly@" + "7" * 64}
SAMPLES = {"samples": b"rows"}
READING, REPLACEMENT = ({**MADE_FROM, "subject": name} for name in ("reading", "replacement"))
TOKENIZER = Ref("tokenizer/docs", "6" * 64)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path}/store")


def published(
    store: Store,
    name: str,
    summary: Mapping[str, Any],
    provenance: Mapping[str, str] = MADE_FROM,
    tables: Mapping[str, bytes] = SAMPLES,
) -> Row:
    made = publish_evaluation(
        store,
        name,
        summary,
        {label: Table(payload, 1, "t/1") for label, payload in tables.items()},
        recipe=f"{name} {summary} {provenance}",
        requires=(),
        provenance=provenance,
        costs={"single_task_milliseconds": {"retrieved": 2.5}},
        message="try",
    )
    row = store.catalog().get(made.summary_ref.version)
    assert row is not None
    return row


def test_only_what_is_of_the_same_snapshot_and_core_stands_beside_an_evaluation(store: Store) -> None:
    attachment = published(store, "attachment", {})
    published(store, "reading", {"tasks": 1}, READING)
    wanted = published(store, "reading", {"tasks": 2}, READING)
    published(store, "reading", {"tasks": 3}, {**READING, "core": "core/other@7"})
    published(store, "other", {"replaced": "memory/a"}, {**REPLACEMENT, "snapshot": "6" * 64})

    found = evaluated_beside(store, attachment, tokenizer=TOKENIZER)

    assert set(found) == {"reading"}
    assert found["reading"]["tasks"] == 2
    assert found["reading"]["latency_ms"] == {"retrieved": 2.5}
    assert found["reading"]["refs"] == {
        "summary": str(wanted.ref),
        "samples": wanted.provenance["samples"],
    }


def test_edited_answers_are_told_with_what_was_written_before_and_after(store: Store) -> None:
    attachment = published(store, "attachment", {})
    before = [
        replace(sample(task, condition, 1.0), written="old")
        for task in range(6)
        for condition in (Condition.NONE, Condition.RIGHT, Condition.RETRIEVED)
    ]
    # Tasks 0 and 3 ask memory/0: of the first the new text is known, the other only reads otherwise.
    after = [
        replace(one, written="new" if one.condition == Condition.RIGHT and one.task != "task 1" else "old")
        for one in before
    ]
    published(
        store,
        "replacement",
        {"replaced": "memory/0", "edited": {"task 0": "new"}},
        REPLACEMENT,
        {"before": encode_samples(before), "samples": encode_samples(after)},
    )

    answers = evaluated_beside(store, attachment, tokenizer=TOKENIZER)["replacement"]["answers"]

    assert [answer["new"] for answer in answers] == ["new", None]
    assert answers[0] == {
        "kind": "quote_continuation",
        "cue": "Brot backen wir",
        "old": "täglich",
        "new": "new",
        "written": {
            "retrieved": {"before": "old", "after": "old"},
            "right": {"before": "old", "after": "new"},
        },
    }


def test_a_report_takes_no_more_edited_answers_than_a_reader_wants(store: Store) -> None:
    attachment = published(store, "attachment", {})
    rows = [sample(3 * task, Condition.RIGHT, 1.0) for task in range(EDITED + 5)]
    tables = {
        "before": encode_samples(rows),
        "samples": encode_samples([replace(one, written="new") for one in rows]),
    }
    published(store, "replacement", {"replaced": "memory/0"}, REPLACEMENT, tables)

    found = evaluated_beside(store, attachment, tokenizer=TOKENIZER)

    assert len(found["replacement"]["answers"]) == EDITED


def test_a_table_that_is_none_is_refused(store: Store) -> None:
    attachment = published(store, "attachment", {})
    tables = {"before": b"no Parquet", "samples": b"neither"}
    published(store, "replacement", {"replaced": "memory/0"}, REPLACEMENT, tables)

    with pytest.raises(BadPayload, match="table of samples"):
        evaluated_beside(store, attachment, tokenizer=TOKENIZER)


def test_without_another_evaluation_there_is_nothing_beside(store: Store) -> None:
    bare = published(store, "bare", {})

    assert evaluated_beside(store, bare, tokenizer=TOKENIZER) == {}
