"""The clock of turns, leases and holds counts the time that the machine sleeps."""

from __future__ import annotations

import time

import pytest

from store import elapsed


def test_a_suspend_counts_where_the_system_says_how_long_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    boot, asleep = getattr(time, "CLOCK_BOOTTIME", None), 600.0
    if boot is None:
        pytest.skip("this system has no such clock")
    before = elapsed.seconds()
    monkeypatch.setattr(time, "clock_gettime", lambda clock: before + asleep if clock == boot else before)

    assert elapsed.seconds() - before == asleep


def test_without_such_a_clock_it_is_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(clock: int) -> float:
        raise OSError("not in this sandbox")

    monkeypatch.setattr(time, "clock_gettime", refuse)
    monkeypatch.setattr(elapsed, "_BOOT_CLOCK", elapsed._boot_clock())

    before = time.monotonic()
    assert before <= elapsed.seconds() <= time.monotonic()
