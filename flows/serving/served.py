"""What a run that `cellar serve` started owes to it: to end when it is killed, and to leave Ctrl-C to it."""

import os
import signal
import sys
import threading

from flows.serving.processes import die_with_parent

SERVED_BY = "CELLAR_SERVED_BY"
"""Variable with the process number of the `cellar serve` that starts the runs."""


def follow_server() -> None:
    """End this process as soon as the server that started it is gone, at once if it is gone already.

    By SIGKILL: the server that would have to be told of a polite end dies with its `cellar serve`, and the
    store is consistent at any moment. Elsewhere, on a worker for example, nothing happens.
    """
    server = os.environ.get(SERVED_BY)
    if server is None or int(server) == os.getpid():
        return
    die_with_parent(signal.SIGKILL)
    if os.getppid() != int(server):
        sys.exit(f"the server {server} that started this run is gone")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
