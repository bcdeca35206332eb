"""A process is recognised later: running, ended, or another one with its number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from store import process
from store.process import identity, is_alive, is_dead


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for its input."""
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield started
    started.kill()
    started.communicate()


def known(number: int) -> dict[str, Any]:
    found = identity(number)
    assert found is not None
    return found


def test_this_process_is_alive() -> None:
    assert is_alive(identity())
    assert not is_dead(identity())


def test_a_process_that_ended_is_dead_even_while_nobody_waited_for_it(child: subprocess.Popen[bytes]) -> None:
    noted = known(child.pid)
    assert is_alive(noted)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(noted)
    child.communicate()
    assert is_dead(noted)
    assert not is_alive(noted)
    assert identity(child.pid) is None


def test_another_process_with_the_same_number_is_not_the_one_meant() -> None:
    own = known(os.getpid())
    assert is_dead({**own, "started": own["started"] - 1})


@pytest.mark.parametrize("place", ["boot", "space"])
def test_nothing_is_said_of_another_machine_or_container(place: str) -> None:
    elsewhere = {**known(os.getpid()), place: "elsewhere", "started": 1}
    assert not is_dead(elsewhere)
    assert not is_alive(elsewhere)


@pytest.mark.parametrize("number", [-(2**70), -1, 0, 2**31, 2**70])
def test_nothing_is_said_of_a_number_that_no_process_has(number: int) -> None:
    noted = {**known(os.getpid()), "number": number}
    assert not is_dead(noted)
    assert not is_alive(noted)


@pytest.mark.parametrize("noted", [None, "", {}, {"host": "here"}, {"boot": "b", "number": "x"}])
def test_nothing_is_said_of_what_is_no_identity(noted: object) -> None:
    assert not is_dead(noted)
    assert not is_alive(noted)


def test_a_process_that_the_system_hides_is_not_dead(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(number: int) -> int:
        raise FileNotFoundError(number)  # as /proc does of other users with hidepid

    noted = known(child.pid)
    monkeypatch.setattr(process, "_started", hidden)
    assert not is_dead(noted)
    child.kill()
    child.communicate()
    assert is_dead(noted)
