"""A process whose clock is wrong by some years: it works on a store, holds a snapshot, and collects garbage.

    python -m tests.store.shifted_clock YEARS URL [K]

Prints the snapshot id and the summary of the collection as JSON, or kills itself before its K-th write. Only
what processes ask for is shifted: the time of files and of servers is not theirs.
"""

from __future__ import annotations

import datetime as dt
import sys
import time

import pyarrow as pa  # noqa: F401 - compiled code expects the real class when it is loaded

_SHIFT_S = float(sys.argv[1]) * 365.25 * 24 * 3600
_now, _now_ns = time.time, time.time_ns
_gmtime, _localtime = time.gmtime, time.localtime


class _Shifted(dt.datetime):
    """`datetime` on a machine whose clock is wrong."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _Shifted:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> _Shifted:
        return cls.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)


time.time = lambda: _now() + _SHIFT_S
time.time_ns = lambda: _now_ns() + int(_SHIFT_S * 1e9)
time.gmtime = lambda seconds=None: _gmtime(time.time() if seconds is None else seconds)
time.localtime = lambda seconds=None: _localtime(time.time() if seconds is None else seconds)
dt.datetime = _Shifted  # type: ignore[misc]

# Only now, so that every module that the store uses sees the wrong clock.
import json  # noqa: E402

from store import Store  # noqa: E402
from store.backend import open_backend  # noqa: E402
from store.gc import collect  # noqa: E402
from tests.store.killed_writer import Killer, deadly, work  # noqa: E402

if __name__ == "__main__":
    killer = Killer(int(sys.argv[3]) if len(sys.argv) > 3 else -1, "before")
    identity = work(deadly(open_backend(sys.argv[2]), killer))
    store = Store.open(sys.argv[2])
    store.hold(f"run{sys.argv[1]}", identity, owner="wrong clock", seconds=3600).take()
    summary = collect(store, apply=True)
    sys.stdout.write(json.dumps({"id": identity, "gc": summary.to_dict()}, default=str))
