"""Which process runs something, in a form that tells later and after a reboot whether it still does."""

import ctypes
import os
import platform
import signal
import sys
import threading
import time

import psutil

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0
_SAME_START_S = 2.0
"""Clocks are set and rounded: start times this close are one process."""


def start_of(pid: int) -> float:
    """When the process of that number began, in seconds of the epoch."""
    return float(psutil.Process(pid).create_time())


def this_process() -> str:
    """This process as `host/pid/start`, the start in seconds of the epoch."""
    return f"{platform.node()}/{os.getpid()}/{start_of(os.getpid()):.2f}"


def is_gone(process: str) -> bool | None:
    """Whether a process of `this_process` has ended; None if that cannot be known from here.

    A pid that now belongs to another process counts as ended, and so does a process that ended and that
    nobody has waited for.
    """
    try:
        host, number, start = process.rsplit("/", 2)
        pid, began = int(number), float(start)
    except ValueError:
        return None
    return find_process(pid, began) is None if host == platform.node() else None


def find_process(pid: int, start: float) -> psutil.Process | None:
    """The process of that number that began at that time, if it still runs."""
    try:
        found = psutil.Process(pid)
        ended = found.status() == psutil.STATUS_ZOMBIE
        return None if ended or abs(found.create_time() - start) > _SAME_START_S else found
    except psutil.NoSuchProcess:
        return None


def die_with_parent(number: signal.Signals = signal.SIGTERM) -> None:
    """Ask the kernel to end this process by a signal when its parent dies, even by SIGKILL.

    To be called between fork and exec, or early in a process. Where the kernel cannot do that, a thread looks
    every second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        return
    parent = os.getppid()
    threading.Thread(target=_follow, args=(parent, number), name="die with parent", daemon=True).start()


def _follow(parent: int, number: signal.Signals) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os.kill(os.getpid(), number)
