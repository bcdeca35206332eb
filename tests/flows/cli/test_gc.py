"""`cellar gc` and `cellar hold` through the real command line, on a folder that the test makes older."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import Store
from tests.store.samples import codec, memory

Cellar = Callable[..., tuple[int, str, str]]


def age(*, days: float) -> None:
    """Let the storage's clock say that everything was written `days` earlier."""
    for path in Path("build/store").rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - days * 24 * 3600
            os.utime(path, (then, then))


def as_json(result: tuple[int, str, str]) -> Any:
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def store(workplace: Path) -> Store:
    """A store with an element that was replaced and one that was retired since the tag was made."""
    store = Store.create("build/store")
    [needed] = store.publish([codec()], message="codec")
    old = store.publish([memory(n, requires=(needed.version,)) for n in range(4)], message="first")
    store.tag("v1", store.pin([needed, *old], message="first").id)
    return store


def test_a_retired_element_goes_when_nothing_names_a_snapshot_with_it(
    cellar: Cellar, store: Store, workplace: Path
) -> None:
    needed = codec().version
    [extra] = store.publish([memory(9, requires=(needed,))], message="extra")
    refs = [row.ref for row in store.catalog().rows()]
    with_extra = store.pin(refs, message="with extra").id
    as_json(cellar("head", "move", "stable", with_extra, "--json"))
    [fixed] = store.publish([memory(3, size=300, requires=(needed,))], message="corrected")

    retired = ("snapshot", "retire", "head:stable", extra.name, "--head", "stable", "--json")
    as_json(cellar(*retired))
    replaced = as_json(cellar("snapshot", "replace", "head:stable", fixed.name, "--head", "stable", "--json"))
    age(days=31)
    looked = as_json(cellar("gc", "--json"))
    assert looked["applied"] is False
    assert (looked["condemned"]["packs"], looked["condemned"]["snapshots"]) == (1, 1)
    assert looked["snapshots"] == {"condemned": [with_extra]}
    assert len(list(store.log())) == 7
    code, out, _ = cellar("gc", "--apply")
    assert f"snapshots, condemned:\n  {with_extra[:12]}\n" in out
    assert (code, "next: `cellar gc --apply` from 20" in out) == (0, True)
    assert store.read(extra) == memory(9, requires=(needed,)).payload

    age(days=8)
    looked_again = cellar("gc")[1]
    assert "nothing was changed: `cellar gc --apply` does this" in looked_again
    assert f"snapshots, to remove:\n  {with_extra[:12]}\n" in looked_again
    done = as_json(cellar("gc", "--apply", "--json"))

    assert (done["collected"]["packs"], done["collected"]["snapshots"]) == (1, 1)
    assert done["snapshots"] == {"collected": [with_extra]}
    assert done["next"] == "nothing is left to remove"
    assert as_json(cellar("verify", "--full", "--json"))["ok"] is True
    assert cellar("snapshot", "show", with_extra)[0] == 4
    opened = Store.open(store.url)
    assert opened.catalog().get(extra.version) is None
    for name, count in (("v1", 5), ("stable", 5)):
        assert len(list(opened.snapshot(name).stream())) == count
    assert opened.head("stable") == replaced["snapshot"]
    assert opened.snapshot("v1").get(fixed.name).version != opened.snapshot("stable").get(fixed.name).version


def test_what_comes_next_is_said_with_the_options_that_were_given(cellar: Cellar, store: Store) -> None:
    options = ("--grace", "36h", "--retain", "0d")
    store.publish([memory(9)], message="unnamed")
    age(days=2)

    looked = as_json(cellar("gc", *options, "--json"))
    assert looked["next"].startswith(
        "nothing was changed: `cellar gc --apply --grace 36h --retain 0d` does this"
    )
    cellar("gc", "--apply", *options)
    age(days=1.4)
    assert as_json(cellar("gc", *options, "--json"))["waiting"]["packs"] == 1
    age(days=0.2)
    assert as_json(cellar("gc", "--apply", *options, "--json"))["collected"]["packs"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--grace", "24h"), "a grace period of 1 day, 0:00:00 is too short"),
        (("--grace", "soon"), '"soon" into a time; write a time as 7d, 36h or 90m; see `cellar gc --help`'),
        (("--retain", "5sfoo"), "see `cellar gc --help`"),
        (("--retain", "99999999999999d"), "see `cellar gc --help`"),
    ],
)
def test_times_that_cannot_be_used_are_refused(
    cellar: Cellar, store: Store, options: tuple[str, str], says: str
) -> None:
    code, _, err = cellar("gc", "--apply", *options)

    assert (code, says in err) == (2, True)
    assert "Traceback" not in err


def test_many_snapshots_are_listed_in_part(cellar: Cellar, store: Store) -> None:
    refs = store.publish([memory(n) for n in range(20, 32)], message="twelve")
    pinned = [store.pin([ref], message="alone").id for ref in refs]
    age(days=31)

    out = cellar("gc")[1]

    shown = out.partition("snapshots, to condemn:\n")[2].splitlines()[:11]
    first = [f"  {identity[:12]}" for identity in sorted(pinned)[:10]]
    assert shown == [*first, "  ... 2 more; --json lists them"]
    assert as_json(cellar("gc", "--json"))["snapshots"]["condemned"] == sorted(pinned)


def test_a_name_that_takes_a_condemned_snapshot_back_says_who_gave_it(cellar: Cellar, store: Store) -> None:
    [extra] = store.publish([memory(9)], message="extra")
    snapshot = store.pin([extra], message="extra").id
    for command in (("hold", "add", "x"), ("tag", "x"), ("head", "move", "x")):
        age(days=31)
        cellar("gc", "--apply")

        assert cellar(*command, snapshot)[0] == 0

        last = list(store.log())[-1]
        assert (last.action, last.snapshot, bool(last.run["user"])) == ("pin", snapshot, True)
        assert last.run["command"] == " ".join(command[:-1])
        if command[0] == "hold":
            store.release_hold("x")
        else:
            store.backend.delete("refs/tags/x")


def test_a_held_snapshot_survives_until_the_hold_is_released(cellar: Cellar, store: Store) -> None:
    [extra] = store.publish([memory(9)], message="extra")
    snapshot = store.pin([extra], message="extra").id
    age(days=31)
    made = as_json(cellar("hold", "add", "run-1", snapshot[:12], "--for", "10d", "--json"))
    assert made["snapshot"] == snapshot

    assert as_json(cellar("gc", "--json"))["condemned"]["packs"] == 0
    [listed] = as_json(cellar("hold", "ls", "--json"))
    assert (listed["name"], listed["until"], listed["expired"]) == ("run-1", made["until"], False)
    age(days=11)
    assert "(over)" in cellar("hold", "ls")[1]
    assert as_json(cellar("gc", "--json"))["condemned"]["packs"] == 1
    assert as_json(cellar("hold", "release", "--expired", "--json")) == ["run-1"]

    assert cellar("hold", "release", "--expired")[1] == "no hold is over\n"
    assert cellar("hold", "release", "run-1")[0] == 4
    assert cellar("hold", "release")[0] == 2
    assert cellar("hold", "add", "x", snapshot, "--for", "9999d")[0] == 2
