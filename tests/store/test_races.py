"""Committers, pinners and head movers that race lose nothing and show nothing twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from store import Store
from store.errors import HeadMoved
from tests.store.samples import memory

ROOT = Path(__file__).parents[2]
COMMITTERS = """
import os, sys
from store import Store
from tests.store.samples import memory
gate, opening = os.pipe()
children = []
for worker in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        store = Store.open(sys.argv[1])
        os.close(opening)
        os.read(gate, 1)
        for number in range(int(sys.argv[3])):
            store.publish([memory(worker * 10 + number), memory(1000)], message=f"{worker} {number}")
        os._exit(0)
    children.append(child)
os.close(opening)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""
"""Processes that begin at one moment, when the last of them was made."""


def race(count: int, work: Callable[[int], object]) -> None:
    start = threading.Barrier(count)

    def begin(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(begin, range(count)))


def assert_all_visible_once(store: Store, numbers: list[int]) -> None:
    rows = store.catalog().rows()
    commits = list(store.log())
    expected = sorted(memory(number).version for number in numbers)

    assert sorted(row.version for row in rows) == expected
    assert sum(commit.elements for commit in commits) == len(numbers)
    assert [commit.sequence for commit in commits] == list(range(1, len(commits) + 1))
    assert store.verify(full=True).findings == ()


def test_racing_stores_in_one_process_commit_everything_once(store: Store, store_url: str) -> None:
    stores = [Store.open(store_url) for _ in range(6)]

    def commit(worker: int) -> None:
        for number in range(3):
            stores[worker].publish([memory(worker * 10 + number), memory(1000)], message=str(worker))

    race(6, commit)

    assert_all_visible_once(store, [w * 10 + n for w in range(6) for n in range(3)] + [1000])


def test_sixteen_racing_processes_commit_everything_once(store: Store, store_url: str) -> None:
    count = 2
    command = [sys.executable, "-c", COMMITTERS, store_url, "16", str(count)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr
    assert_all_visible_once(store, [w * 10 + n for w in range(16) for n in range(count)] + [1000])


def test_two_committers_of_one_build_make_one_commit(store: Store, store_url: str) -> None:
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(1))
        receipt = writer.finish()
    stores = [Store.open(store_url) for _ in range(4)]
    made = []

    race(4, lambda n: made.append(stores[n].build("b", owner=str(n)).commit([receipt], message="one")))

    assert len({commit.digest for commit in made}) == 1
    assert len(list(store.log())) == 1


def test_racing_pins_of_one_set_make_one_commit(store: Store, store_url: str) -> None:
    refs = store.publish([memory(number) for number in range(5)], message="five")
    stores = [Store.open(store_url) for _ in range(4)]
    ids = []

    race(4, lambda n: ids.append(stores[n].pin(refs, message=str(n)).id))

    assert len(set(ids)) == 1
    assert [commit.action for commit in store.log()] == ["publish", "pin"]


def test_of_racing_head_moves_exactly_one_wins(store: Store) -> None:
    refs = store.publish([memory(number) for number in range(5)], message="five")
    ids = [store.pin(refs[: count + 1], message="pin").id for count in range(5)]
    store.move_head("main", ids[0], expect=None)
    won = []

    def move(number: int) -> None:
        try:
            store.move_head("main", ids[number + 1], expect=ids[0])
        except HeadMoved:
            return
        won.append(ids[number + 1])

    race(4, move)

    assert won == [store.head("main")]
