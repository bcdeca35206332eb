"""Edited documents, and which results a difference concerns."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import TooLittleText
from tasks.evaluation import AttachmentTask, Condition, Placement, Sample
from tasks.replacement import Change, changed, concerned, edit, editable, expected, most_asked

CUE, TARGET = 4, 3
TEXT = np.arange(100, 140, dtype=np.uint16)


def task(element: str, offset: int, ids: np.ndarray = TEXT) -> AttachmentTask:
    return AttachmentTask(
        f"{element}/{offset}",
        "quote_continuation",
        element,
        offset,
        ids[offset - CUE : offset].astype(np.int64),
        ids[offset : offset + TARGET].astype(np.int64),
    )


OWN = [task("memory/a", offset) for offset in (4, 10, 20)]  # the second's cue shows the first's answer
OTHER = task("memory/b", 8)


def test_an_answer_that_another_cue_shows_stays_and_cues_stay() -> None:
    assert editable(OWN) == OWN[1:]
    assert most_asked([OTHER, *OWN]) == "memory/a"

    made = edit(TEXT, OWN, {"memory/b": np.arange(30)}, np.random.default_rng(0))

    differing = set(np.flatnonzero(made != TEXT).tolist())
    answers = {p for one in OWN[1:] for p in range(one.offset, one.offset + TARGET)}
    assert differing == answers
    again = edit(TEXT, OWN, {"memory/b": np.arange(30)}, np.random.default_rng(0))
    assert np.array_equal(made, again)


def test_a_donor_that_says_the_same_is_passed_over() -> None:
    made = edit(TEXT, OWN[1:2], {"memory/b": TEXT[10:14]}, np.random.default_rng(0))
    assert not np.array_equal(made[10:13], TEXT[10:13])


@pytest.mark.parametrize(
    ("text", "offset", "others"),
    [
        (np.zeros(60, np.uint16), 32, {"memory/b": np.zeros(40, np.uint16)}),
        (TEXT, 10, {"memory/b": TEXT[:2]}),  # shorter than an answer
        (TEXT, 10, {"memory/b": TEXT[10:13], "memory/c": TEXT[11:13]}),
        (TEXT, 10, {}),
    ],
)
def test_where_no_document_says_something_else_that_is_said(
    text: np.ndarray, offset: int, others: dict[str, np.ndarray]
) -> None:
    with pytest.raises(
        TooLittleText, match="no other document holds 3 tokens that differ from what memory/a"
    ):
        edit(text, [task("memory/a", offset, text)], others, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(8))
def test_the_only_span_that_differs_is_found_from_every_place(seed: int) -> None:
    same = np.zeros(60, np.uint16)
    others = {"memory/b": np.array([0] * 30 + [5] + [0] * 9), "memory/c": np.zeros(50, np.uint16)}
    made = edit(same, [task("memory/a", 32, same)], others, np.random.default_rng(seed))
    assert set(np.flatnonzero(made).tolist()) <= {32, 33, 34}
    assert made.sum() == 5


def test_only_an_answer_that_is_edited_asks_for_a_donor_of_its_length() -> None:
    long_cue = replace(task("memory/a", 20), target=TEXT[20:30].astype(np.int64))
    shown = replace(task("memory/a", 34), cue=TEXT[14:34].astype(np.int64))  # no answer of it is edited
    assert editable([task("memory/a", 10), shown, long_cue])[0].offset == 10
    made = edit(
        TEXT, [task("memory/a", 10), shown, long_cue], {"memory/b": np.arange(3)}, np.random.default_rng(0)
    )
    assert np.flatnonzero(made != TEXT).tolist()[:3] == [10, 11, 12]


def sample(condition: Condition, name: str, **figures: object) -> Sample:
    made = Sample(
        task=name,
        kind="quote_continuation",
        condition=condition.value,
        family=condition.family.value,
        element="memory/a",
        evidence="",
        evidence_start=0,
        weight=1.0,
        attached=3,
        nll=1.0,
        target_tokens=3,
        right_tokens=1,
        exact=False,
        bytes_read=1,
        cue="",
        target="",
        written="",
    )
    return replace(made, **figures)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "start", "touched"),
    [
        (Condition.RIGHT, 0, True),  # the second block of 8 is in it
        (Condition.RIGHT, 15, False),  # only what stands at position 0, which is never attached
        (Condition.RIGHT, 14, True),
        (Condition.RIGHT, 30, False),
        (Condition.RAW_TEXT, 0, False),
        (Condition.RAW_TEXT, 6, True),
        (Condition.NONE, 0, False),
    ],
)
def test_a_cell_is_different_for_all_its_tokens_and_raw_text_for_its_own(
    condition: Condition, start: int, touched: bool
) -> None:
    cells = np.repeat([False, True, False, False, False], 8)
    change = Change("memory/a", cells, np.arange(40) == 12)
    assert change.touches(condition, Placement("memory/a", start), 10) is touched
    assert not change.touches(condition, Placement("memory/b", start), 10)
    assert not change.touches(condition, None, 10)


def test_results_have_to_change_where_other_evidence_is_laid_with_a_weight() -> None:
    tasks = [*OWN[:2], OTHER]
    names = [one.name for one in tasks]
    laid = [Placement("memory/a", 4), Placement("memory/a", 30), Placement("memory/b", 4)]
    moved = [laid[0], laid[1], Placement("memory/c", 4)]
    before, after = {Condition.RIGHT: laid}, {Condition.RIGHT: moved}
    change = Change("memory/a", np.repeat([False, True, False, False, False], 8), np.zeros(40, bool))
    assert concerned(tasks, before, after, "memory/a") == [True, True, True]
    assert concerned(tasks, before, before, "memory/a") == [True, True, False]
    pairs = [(sample(Condition.RIGHT, name), sample(Condition.RIGHT, name)) for name in names]
    assert expected(tasks, before, after, pairs, change) == {("right", names[0]), ("right", names[2])}
    unweighed = [(replace(old, weight=0.0), replace(new, weight=0.0)) for old, new in pairs]
    assert expected(tasks, before, after, unweighed, change) == set()
    assert changed(pairs) == set()
    assert changed([(pairs[0][0], replace(pairs[0][1], nll=np.nextafter(1.0, 2)))]) == {("right", names[0])}
