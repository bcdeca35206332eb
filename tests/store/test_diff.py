"""What differs between two snapshots, against plain dictionaries."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from store import Element, Store
from store.diff import Change, Entry, Totals, compare, entries_of
from tests.store.samples import BYTES, memory

SETS = st.dictionaries(st.text("abé\U0001f600", max_size=3), st.integers(0, 2), max_size=8)


def entries(versions: dict[str, int]) -> list[Entry]:
    return [Entry(name, str(version), version) for name, version in sorted(versions.items())]


@given(before=SETS, after=SETS)
def test_every_difference_is_found_once_in_the_order_of_names(
    before: dict[str, int], after: dict[str, int]
) -> None:
    changes = list(compare(entries(before), entries(after)))

    assert [change.name for change in changes] == sorted(change.name for change in changes)
    found = {what: {c.name for c in changes if c.what == what} for what in ("added", "removed", "replaced")}
    assert found["added"] == after.keys() - before.keys()
    assert found["removed"] == before.keys() - after.keys()
    assert found["replaced"] == {n for n in before.keys() & after.keys() if before[n] != after[n]}
    for change in changes:
        assert (change.before.bytes if change.before else None) == before.get(change.name)
        assert (change.after.bytes if change.after else None) == after.get(change.name)


@given(before=SETS, after=SETS)
def test_the_totals_account_for_all_bytes(before: dict[str, int], after: dict[str, int]) -> None:
    totals = Totals()
    for change in compare(entries(before), entries(after)):
        totals.count(change)

    tallies = (totals.added, totals.removed, totals.replaced)
    gained = sum(tally.bytes_after - tally.bytes_before for tally in tallies)
    assert gained == sum(after.values()) - sum(before.values())
    assert totals.added.bytes_before == totals.removed.bytes_after == 0


def test_both_sides_are_read_once_and_together() -> None:
    taken: list[str] = []

    def side(label: str) -> list[Entry]:
        for number in range(3):
            taken.append(label)
            yield Entry(f"{number}", "v", 1)

    assert list(compare(side("left"), side("right"))) == []
    assert taken == ["left", "right"] * 3


def test_snapshots_of_a_store_are_compared_by_version(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    refs = store.publish([memory(number) for number in range(3)], message="three")
    one = store.pin(refs, message="one")
    [new] = store.publish([Element("memory", "doc/00001", b"other", media=BYTES)], message="other")
    two = store.pin([refs[0], new], message="two")

    changes = list(compare(entries_of(one), entries_of(two)))

    assert changes == [
        Change(new.name, Entry(new.name, refs[1].version, 200), Entry(new.name, new.version, 5)),
        Change(refs[2].name, Entry(refs[2].name, refs[2].version, 200), None),
    ]
    assert changes[0].to_dict() == {
        "name": new.name,
        "before": {"version": refs[1].version, "bytes": 200},
        "after": {"version": new.version, "bytes": 5},
    }
