"""A process that collects garbage, under a clock that its parent set, and kills itself around its k-th write.

    python -m tests.store.killed_collector URL CLOCK K before|after

CLOCK is the JSON of `Clock.to_json`. With K = -1 it runs to the end and prints how many writes and deletions
it made; it exits with the code of the error where one is due.
"""

from __future__ import annotations

import sys

from store import Store
from store.backend import Backend, open_backend
from store.errors import CellarError
from store.gc import collect
from tests.store.clocks import Clock, ClockedBackend
from tests.store.killed_writer import Killer, deadly


def deadly_too(backend: Backend, killer: Killer) -> Backend:
    """Return the same backend with every write and every deletion passing through `killer`."""
    delete = backend.delete
    deadly(backend, killer).delete = lambda key: killer.around(key, lambda: delete(key))  # type: ignore
    return backend


if __name__ == "__main__":
    url, clock, at, when = sys.argv[1:]
    killer = Killer(int(at), when)
    backend = ClockedBackend(deadly_too(open_backend(url), killer), Clock.from_json(clock))
    try:
        collect(Store(backend), apply=True)
    except CellarError as error:
        sys.exit(error.exit_code)
    sys.stdout.write(f"{killer.count}\n")
