"""A process that ends with the one that started it, however that ends."""

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0


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
