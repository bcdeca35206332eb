"""A clock that counts on while the machine sleeps.

On Linux `time.monotonic` stands still during a suspend. A turn, lease or hold is over by the storage's clock
meanwhile, and whoever wakes up must not take it for fresh.
"""

from __future__ import annotations

import time


def seconds() -> float:
    """Return the seconds since some fixed moment, a suspend included where the system counts it."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


def _boot_clock() -> int | None:
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is not None:
        try:
            time.clock_gettime(clock)
        except OSError:  # a kernel or sandbox without it
            return None
    return clock


_BOOT_CLOCK = _boot_clock()
