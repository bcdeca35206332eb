"""The log, differences, retirement and replacement, through the real command line and a real store."""

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from store import Commit, Element, Store
from tests.store.samples import BYTES, codec, memory

Cellar = Callable[..., tuple[int, str, str]]
NEW = Element(
    "memory",
    "doc/00001",
    b"other",
    media=BYTES,
    requires=(codec().version,),
    provenance={"recipe": "cd" * 32},
)


@pytest.fixture
def store(workplace: Path) -> Store:
    """Four elements, one of them in two versions, and the snapshot `v1` of the first versions."""
    store = Store.create(str(workplace / "build" / "store"))
    elements = [codec(), *(memory(number, requires=(codec().version,)) for number in range(3))]
    refs = store.publish(elements, message="four elements")
    store.tag("v1", store.pin(refs, message="the first set").id)
    store.publish([NEW], message="another version")
    return store


def as_json(result: tuple[int, str, str]) -> Any:
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def names(store: Store, snapshot: str) -> set[str]:
    return {row.name for row in store.snapshot(snapshot).rows()}


def test_the_log_shows_every_field_and_is_filtered(cellar: Cellar, store: Store) -> None:
    everything = as_json(cellar("log", "--json"))

    assert [entry["sequence"] for entry in everything] == [3, 2, 1]
    assert everything[0].keys() == {field.name for field in fields(Commit)}
    assert everything[0] == json.loads(json.dumps(asdict(list(store.log())[-1])))
    assert [e["message"] for e in as_json(cellar("log", "--action", "pin", "--json"))] == ["the first set"]
    assert [e["sequence"] for e in as_json(cellar("log", "--since", "1", "--json"))] == [3, 2]
    assert [e["sequence"] for e in as_json(cellar("log", "--since", "1", "-n", "1", "--json"))] == [3]
    assert "1 more" in cellar("log", "--action", "publish", "-n", "1")[1]
    assert cellar("log", "--since", "3")[:2] == (0, "no such commit\n")
    code, _, err = cellar("log", "--action", "pins")
    assert (code, "actions are" in err) == (2, True)


def test_a_message_acts_neither_on_the_terminal_nor_on_the_table(cellar: Cellar, store: Store) -> None:
    store.pin([codec().ref], message="\x1b[2Jone\ntwo")

    _, out, _ = cellar("log")

    assert "␛[2Jone two" in out
    assert len(out.splitlines()) == 5


def test_a_difference_names_both_versions_and_sizes(cellar: Cellar, store: Store) -> None:
    refs = [row.ref for row in store.snapshot("v1").rows() if not row.name.endswith(("1", "2"))]
    added = store.publish([memory(7)], message="seven")
    two = store.pin([*refs, NEW.ref, *added], message="two").id

    found = as_json(cellar("snapshot", "diff", "v1", two, "--json"))

    assert (found["before"], found["after"]) == (store.tags()["v1"], two)
    assert found["added"] == [
        {"name": "memory/doc/00007", "after": {"version": added[0].version, "bytes": 200}}
    ]
    assert [entry["name"] for entry in found["removed"]] == ["memory/doc/00002"]
    [replaced] = found["replaced"]
    assert replaced["after"] == {"version": NEW.version, "bytes": 5}
    assert replaced["before"]["bytes"] == 200
    assert found["totals"]["replaced"] == {"elements": 1, "bytes_before": 200, "bytes_after": 5}
    lines = cellar("snapshot", "diff", "v1", two)[1].splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["~", "memory/doc/00001"],
        ["-", "memory/doc/00002"],
        ["+", "memory/doc/00007"],
    ]
    assert lines[3] == "1 added, 1 removed, 1 replaced; -195 bytes"
    assert as_json(cellar("snapshot", "diff", "v1", two, "--kind", "codec", "--json"))["replaced"] == []
    globbed = as_json(cellar("snapshot", "diff", "v1", two, "--name", "*7", "--json"))
    assert globbed["totals"]["added"]["elements"] == 1
    assert globbed["totals"]["removed"]["elements"] == 0
    assert cellar("snapshot", "diff", "v1", "v1")[:2] == (0, "no difference\n")


def test_a_snapshot_says_who_pinned_it_and_what_it_holds(cellar: Cellar, store: Store) -> None:
    pinned = as_json(cellar("snapshot", "pin", "memory/doc/00000", "-m", "by hand", "--json"))["snapshot"]
    store.move_head("main", pinned, expect=None)

    shown = as_json(cellar("snapshot", "show", "head:main", "--json"))

    assert shown["names"] == ["head:main"]
    [pin] = shown["pins"]
    assert (pin["commit"], pin["message"], pin["run"]["command"]) == (4, "by hand", "snapshot pin")
    assert pin["run"]["user"]
    assert shown["kinds"] == {
        "codec": {"elements": 1, "bytes": len(codec().payload)},
        "memory": {"elements": 1, "bytes": 200},
    }
    assert (shown["count"], shown["packs"]) == (2, 1)
    out = cellar("snapshot", "show", "v1")[1]
    assert "names    v1" in out
    assert "in commit 2: the first set" in out
    assert out.count("memory/doc/") == 3
    only = as_json(cellar("snapshot", "show", "v1", "--kind", "memory", "--name", "*2", "--json"))
    assert [entry["name"] for entry in only["elements"]] == ["memory/doc/00002"]


def test_an_element_shows_its_whole_record(cellar: Cellar, store: Store) -> None:
    record = as_json(cellar("snapshot", "show", "v1", "--element", "memory/doc/00001", "--json"))

    row = store.snapshot("v1").get("memory/doc/00001")
    assert (record["version"], record["digest"], record["pack"]) == (row.version, row.digest, row.pack)
    assert record["provenance"] == row.provenance
    assert record["facts"] == {"token_recall": 0.99, "steps": 1}
    assert record["requires"] == [{"name": "codec/c", "version": codec().version}]
    assert not [field for field in record if field.startswith("_")]
    assert [(v["version"], v["commit"], v["message"], v["held"]) for v in record["versions"]] == [
        (row.version, 1, "four elements", True),
        (NEW.version, 3, "another version", False),
    ]
    out = cellar("snapshot", "show", "v1", "--element", "memory/doc/00001")[1]
    assert out.startswith(f"memory/doc/00001@{row.version}\n")
    for part in ("requires  codec/c@", "  token_recall  0.99", "  recipe  ", "in this snapshot"):
        assert part in out
    assert cellar("snapshot", "show", "v1", "--element", "memory/none")[0] == 4


def test_a_retired_element_stays_in_earlier_snapshots(cellar: Cellar, store: Store) -> None:
    store.move_head("main", store.tags()["v1"], expect=None)

    made = as_json(
        cellar(
            "snapshot",
            "retire",
            "head:main",
            "memory/doc/0000[12]",
            "--head",
            "main",
            "--tag",
            "v2",
            "--json",
        )
    )

    assert names(store, "v2") == {"codec/c", "memory/doc/00000"}
    assert len(names(store, "v1")) == 4
    assert store.head("main") == made["snapshot"]
    assert [position.snapshot for position in store.head_log("main")] == [made["base"], made["snapshot"]]
    assert [text.partition("@")[0] for text in made["retired"]] == ["memory/doc/00001", "memory/doc/00002"]
    last = list(store.log())[-1]
    assert last.message == f"Retire 2 elements from {made['base'][:12]}"
    assert last.run["command"] == "snapshot retire"


def test_what_others_require_is_retired_with_them_or_not_at_all(cellar: Cellar, store: Store) -> None:
    commits = len(list(store.log()))

    code, _, err = cellar("snapshot", "retire", "v1", "codec/c")

    assert code == 2
    assert "memory/doc/00000, memory/doc/00001 and memory/doc/00002 require codec/c" in err
    assert cellar("snapshot", "retire", "v1", "codec/c", "--with-dependents")[0] == 2  # nothing would be left
    assert cellar("snapshot", "retire", "v1", "memory/none")[0] == 4
    assert cellar("snapshot", "retire", "v1")[0] == 2
    assert len(list(store.log())) == commits


def test_names_that_cannot_be_given_are_refused_before_anything_is_pinned(
    cellar: Cellar, store: Store
) -> None:
    other = store.pin([codec().ref], message="other").id
    store.move_head("main", other, expect=None)
    commits = len(list(store.log()))

    for names_given in (["--tag", "v1"], ["--head", "main"]):
        code, _, err = cellar("snapshot", "retire", "v1", "memory/doc/00001", *names_given)
        assert (code, names_given[1] in err) == (7, True)
    assert cellar("snapshot", "retire", "v1", "memory/doc/00001", "--tag", "a/b")[0] == 2
    assert len(list(store.log())) == commits
    assert store.head("main") == other


def test_a_retirement_that_is_repeated_finds_itself_done(cellar: Cellar, store: Store) -> None:
    base = store.tags()["v1"]
    command = ("snapshot", "retire", base, "memory/doc/00001", "--head", "main", "--tag", "v2", "--json")

    first, again = as_json(cellar(*command)), as_json(cellar(*command))

    assert (first["new"], again["new"], first["commit"]) == (True, False, 4)
    assert first == {**again, "new": True}
    assert len(store.head_log("main")) == 1


def test_an_element_is_replaced_by_its_newest_version(cellar: Cellar, store: Store) -> None:
    [added] = store.publish([memory(9, requires=(codec().version,))], message="nine")

    made = as_json(
        cellar("snapshot", "replace", "v1", "memory/doc/00001", str(added), "--head", "main", "--json")
    )

    snapshot = store.snapshot("main")
    assert snapshot.id == made["snapshot"]
    assert snapshot.get("memory/doc/00001").version == NEW.version
    assert snapshot.count == made["count"] == 5
    assert made["added"] == [str(added)]
    [replaced] = made["replaced"]
    assert replaced["after"] == str(NEW.ref)
    again = cellar("snapshot", "replace", "v1", "memory/doc/00001", str(added))[1]
    assert f"snapshot {made['snapshot']} of 5 elements was pinned already, in commit 5\n" in again


def test_a_set_that_was_pinned_already_is_said_to_be_so(cellar: Cellar, store: Store) -> None:
    command = ("snapshot", "pin", "codec/c", "-m")

    assert cellar(*command, "first")[1].startswith("pinned 1 element as snapshot ")
    code, out, _ = cellar(*command, "second", "--tag", "v2")

    assert (code, out.endswith(" of 1 element was pinned already, in commit 4; now named v2\n")) == (0, True)
    assert as_json(cellar(*command, "third", "--json"))["new"] is False
    assert [commit.message for commit in store.log()][-1] == "first"


def test_the_first_digits_of_a_version_are_enough(cellar: Cellar, store: Store) -> None:
    old = store.snapshot("v1").get("memory/doc/00001").version

    made = as_json(cellar("snapshot", "pin", f"memory/doc/00001@{old[:12]}", "--json"))

    assert store.snapshot(made["snapshot"]).get("memory/doc/00001").version == old


def test_a_replacement_that_breaks_others_is_refused(cellar: Cellar, store: Store) -> None:
    store.publish([codec(width=5)], message="another codec")

    code, _, err = cellar("snapshot", "replace", "v1", "codec/c")

    assert code == 2
    assert "and memory/doc/00002 require the present version of codec/c" in err
    assert cellar("snapshot", "replace", "v1", "codec/none")[0] == 4
    assert cellar("snapshot", "replace", "v1")[0] == 2


def test_snapshots_that_are_gone_are_not_listed(cellar: Cellar, store: Store) -> None:
    gone = store.pin([codec().ref], message="to be collected").id
    store.backend.delete(f"snapshots/{gone}.json")

    assert [entry["names"] for entry in as_json(cellar("snapshot", "ls", "--json"))] == [["v1"]]


def test_a_lineage_of_a_bare_name_is_told_how_elements_are_given(cellar: Cellar, store: Store) -> None:
    code, _, err = cellar("lineage", "nosuch")

    assert (code, "an element is given with its kind, as in memory/nosuch" in err) == (4, True)
