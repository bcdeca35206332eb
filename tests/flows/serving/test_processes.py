"""A process is recognised later: running, ended, or another one with its number."""

import os
import platform
import subprocess
import sys

import pytest

from flows.serving.processes import find_process, is_gone, start_of, this_process


def test_this_process_is_there() -> None:
    assert is_gone(this_process()) is False


def test_a_process_that_ended_is_gone_even_while_nobody_waited_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{platform.node()}/{child.pid}/{start_of(child.pid):.2f}"
    assert is_gone(name) is False
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(name) is True
    child.communicate()
    assert is_gone(name) is True


def test_another_process_with_the_same_number_is_not_the_one_meant() -> None:
    own = os.getpid()
    assert is_gone(f"{platform.node()}/{own}/{start_of(own) - 60:.2f}") is True
    assert find_process(own, start_of(own)) is not None


@pytest.mark.parametrize("name", ["elsewhere/1/1.0", "", "no name", f"{platform.node()}/x/y"])
def test_nothing_is_said_of_other_machines_and_other_texts(name: str) -> None:
    assert is_gone(name) is None
