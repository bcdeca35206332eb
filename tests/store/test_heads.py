"""A head remembers where it pointed, so that it can be rolled back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from store import Position, Store
from store.backend.local import LocalBackend
from store.errors import HeadMoved, InputError, IntegrityError, SnapshotNotFound
from store.format import seal
from store.positions import KEPT, LONGEST_WHY, Note, snapshot_before
from tests.store.faulty import Call, Fault, FaultyBackend
from tests.store.samples import memory

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def pins(store: Store, count: int) -> list[str]:
    refs = store.publish([memory(number) for number in range(count)], message="elements")
    return [store.pin(refs[: number + 1], message="pin").id for number in range(count)]


def moves(*snapshots: str) -> list[Position]:
    return [Position(snapshot, f"2026-01-01T00:00:{n:02d}+00:00") for n, snapshot in enumerate(snapshots)]


def test_a_head_remembers_every_place_it_pointed_to(store: Store, store_url: str) -> None:
    one, two, three = pins(store, 3)
    for before, after in ((None, one), (one, two), (two, three), (three, one)):
        store.move_head("main", after, expect=before)

    positions = Store.open(store_url).head_log("main")

    assert [position.snapshot for position in positions] == [one, two, three, one]
    assert sorted(position.time for position in positions) == [position.time for position in positions]
    assert store.head("main") == one
    with pytest.raises(SnapshotNotFound, match="no head other"):
        store.head_log("other")


def test_a_move_to_where_a_head_is_leaves_no_trace(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    one, two = pins(store, 2)
    store.move_head("main", one, expect=None)
    before = store.head_log("main")

    store.move_head("main", one, expect=one)
    with pytest.raises(HeadMoved):
        store.move_head("main", two, expect=two)

    assert store.head_log("main") == before


def test_the_history_of_a_head_is_bounded(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    one, two = pins(store, 2)
    record = {"snapshot": two, "time": "now", "history": [[one, str(number)] for number in range(KEPT)]}
    store.backend.put("refs/heads/main", seal(record))

    store.move_head("main", one, expect=two)

    times = [position.time for position in store.head_log("main")]
    assert times[:-1] == [*(str(number) for number in range(1, KEPT)), "now"]
    assert len(store.backend.read("refs/heads/main")) < 10_000


def test_a_head_without_history_opens_and_continues(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    one, two = pins(store, 2)
    store.backend.put("refs/heads/main", seal({"id": "0", "name": "main", "snapshot": one, "time": "then"}))

    assert store.head_log("main") == (Position(one, "then"),)
    store.move_head("main", two, expect=one)
    assert [position.snapshot for position in store.head_log("main")] == [one, two]


@pytest.mark.parametrize(
    "history",
    [{}, [[]], [["0" * 64]], [["../x", "now"]], [["0" * 64, 1]], [["0" * 64, "now", "more"]], ["0" * 64]],
)
def test_a_history_that_names_no_snapshots_is_refused(tmp_path: Path, history: object) -> None:
    store = Store.create(str(tmp_path))
    store.backend.put("refs/heads/main", seal({"snapshot": A, "time": "now", "history": history}))

    with pytest.raises(IntegrityError, match="refs/heads/main"):
        store.head_log("main")


def test_of_racing_moves_each_winner_is_in_the_history_once(store: Store, store_url: str) -> None:
    ids = pins(store, 5)
    store.move_head("main", ids[0], expect=None)
    stores = [Store.open(store_url) for _ in ids[1:]]

    def move(mine: Store, snapshot: str) -> None:
        while True:
            try:
                return mine.move_head("main", snapshot, expect=mine.head("main"))
            except HeadMoved:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(move, stores, ids[1:]))

    positions = [position.snapshot for position in store.head_log("main")]
    assert positions[0] == ids[0]
    assert sorted(positions) == sorted(ids)
    assert positions[-1] == store.head("main")


@pytest.mark.parametrize(
    ("moved", "target"),
    [((A, B), A), ((A, B, C), B), ((A, B, C, B), A), ((A, B, A, C), A), ((A, B, C, C), B)],
)
def test_a_rollback_goes_to_what_was_there_before_the_present_snapshot(
    moved: tuple[str, ...], target: str
) -> None:
    assert snapshot_before(moves(*moved), "main") == target


def test_a_rollback_needs_something_older() -> None:
    with pytest.raises(SnapshotNotFound, match="cellar head move main"):
        snapshot_before(moves(A), "main")


def test_a_head_that_came_back_to_its_oldest_place_is_told_how_to_go_where_it_was() -> None:
    with pytest.raises(SnapshotNotFound, match=f"`cellar head rollback main --to {C[:12]}` takes it"):
        snapshot_before(moves(A, B, C, A), "main")


@pytest.mark.parametrize("fault", [Fault.LANDED, Fault.FAILED_AFTER, Fault.REPEATED])
def test_a_move_whose_answer_was_lost_is_no_conflict_if_somebody_moved_on(
    tmp_path: Path, fault: Fault
) -> None:
    others = Store.create(str(tmp_path))
    one, two, three = pins(others, 3)
    others.move_head("main", one, expect=None)
    mine = FaultyBackend(LocalBackend(tmp_path))

    def move_on() -> None:
        if mine.met and others.head("main") == two:
            others.move_head("main", three, expect=two)

    store = Store(mine)
    mine.pause = move_on
    mine.schedule = lambda call: fault if call.kind == "replace" and not mine.met else None
    store.move_head("main", two, expect=one)

    assert [position.snapshot for position in others.head_log("main")] == [one, two, three]


def test_a_move_succeeds_where_the_head_left_and_came_back(tmp_path: Path) -> None:
    others = Store.create(str(tmp_path))
    one, two, three = pins(others, 3)
    others.move_head("main", one, expect=None)
    mine = FaultyBackend(LocalBackend(tmp_path))
    store = Store(mine)

    def move_away_and_back(call: Call) -> None:
        if call.kind == "replace" and len(others.head_log("main")) == 1:
            others.move_head("main", two, expect=one)
            others.move_head("main", one, expect=two)

    mine.schedule = move_away_and_back
    store.move_head("main", three, expect=one)

    assert [position.snapshot for position in others.head_log("main")] == [one, two, one, three]


def test_a_head_remembers_who_moved_it_how_and_why(store_url: str, store: Store) -> None:
    one, two = pins(store, 2)
    by_ada = Store.open(store_url, run={"user": "ada", "host": "lab", "command": "head move"})
    store.move_head("main", one, expect=None)

    by_ada.move_head("main", two, expect=one, action="promote", why="better", evaluation="evaluation/x@1")

    first, last = Store.open(store_url).head_log("main")
    assert first.note == Note(action="move")
    assert last.note == Note(action="promote", by="ada@lab", why="better", evaluation="evaluation/x@1")
    assert store.verify().findings == ()


def test_a_program_that_knows_no_notes_can_move_the_head_in_between(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    one, two = pins(store, 2)
    store.move_head("main", one, expect=None, why="first")
    known = store.head_log("main")
    history = [[position.snapshot, position.time] for position in known]
    store.backend.put("refs/heads/main", seal({"snapshot": two, "time": "now", "history": history}))

    store.move_head("main", one, expect=two, why="back")

    assert [position.note.why for position in store.head_log("main")] == ["", "", "back"]
    assert [position.snapshot for position in store.head_log("main")] == [one, two, one]


def test_a_reason_that_is_too_long_moves_nothing_and_long_ones_fill_no_record(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    one, two = pins(store, 2)
    with pytest.raises(InputError, match="why of a move has 401 characters"):
        store.move_head("main", one, expect=None, why="x" * (LONGEST_WHY + 1))
    assert store.head("main") is None
    record = {
        "snapshot": two,
        "time": "now",
        "history": [[one, "then"]] * KEPT,
        "notes": [Note("promote", "u@h", "y" * LONGEST_WHY, "e" * 80).to_dict()] * (KEPT + 1),
    }
    store.backend.put("refs/heads/main", seal(record))

    store.move_head("main", one, expect=two, why="z" * LONGEST_WHY)

    assert len(store.head_log("main")) == KEPT + 1
    assert len(store.backend.read("refs/heads/main")) < 100_000


@pytest.mark.parametrize("notes", [{}, [], [{}, {}], ["x"], [{"why": 1}], None])
def test_notes_that_are_none_are_refused(tmp_path: Path, notes: object) -> None:
    store = Store.create(str(tmp_path))
    store.backend.put("refs/heads/main", seal({"snapshot": A, "time": "now", "history": [], "notes": notes}))

    with pytest.raises(IntegrityError, match="refs/heads/main"):
        store.head_log("main")


def test_what_a_later_version_notes_besides_is_left_out(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    notes = [{"why": "so", "ticket": "7"}]
    store.backend.put("refs/heads/main", seal({"snapshot": A, "time": "now", "history": [], "notes": notes}))

    assert store.head_log("main") == (Position(A, "now", Note(why="so")),)
