"""Progress appears only when it is worth it, with rate and time left."""

import io
import sys
import time
from collections.abc import Callable

import pytest

from flows.cli import bars
from flows.cli.bars import Bar
from flows.cli.waiting import Waiting


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_quick_shows_nothing() -> None:
    for stream in (io.StringIO(), Terminal()):
        clock = Clock()
        with Bar("corpus", "documents", stream, clock) as bar:
            bar(1, 10)
            clock.now += 1.9
            bar(10, 10)
        assert stream.getvalue() == ""


def test_a_log_gets_a_plain_line_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()

    with Bar("memory", "documents", stream, clock) as bar:
        for second in range(1, 15):
            clock.now = 100 + second
            bar(second * 50, 1000, loss=2.0)

    assert stream.getvalue().splitlines() == [
        "memory: 100 of 1,000 documents (50/s, 18 s left)  loss 2",
        "memory: 600 of 1,000 documents (50/s, 8 s left)  loss 2",
    ]


def test_an_unknown_total_has_no_time_left() -> None:
    stream, clock = io.StringIO(), Clock()

    with Bar("corpus", "documents", stream, clock) as bar:
        clock.now += 4
        bar(2, 0)

    assert stream.getvalue() == "corpus: 2 documents (0.5/s)\n"


def test_a_terminal_gets_a_bar_with_rate_and_figures() -> None:
    stream, clock = Terminal(), Clock()

    with Bar("codec", "steps", stream, clock) as bar:
        clock.now += 5
        bar(500, 1000, loss=1.25)

    shown = stream.getvalue()
    assert "codec" in shown
    assert "500/1000" in shown
    assert "100/s" in shown


def test_a_log_that_nobody_reads_any_more_does_not_end_the_work() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    clock = Clock()
    with Bar("codec", "updates", Closed(), clock) as bar:
        clock.now += 60
        bar(1, 10)


def until(true: Callable[[], bool]) -> None:
    """Wait for what a thread does, ten seconds at most."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def screen(stream: Terminal) -> str:
    """What stands in the last line of a terminal: text after the last time that it was cleared."""
    return stream.getvalue().rpartition("\x1b[2K")[2].strip()


def test_a_terminal_says_what_goes_on_while_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER_S", 0.02)
    stream, log = Terminal(), io.StringIO()
    with Bar("start Prefect", "", log):
        with Bar("prepare", "", stream):
            until(lambda: screen(stream).startswith("prepare, 0 s"))
            with Bar("check host", "MB", stream):
                until(lambda: screen(stream).startswith("check host, "))
            until(lambda: screen(stream).startswith("prepare, "))
        assert screen(stream) == ""
        before = stream.getvalue()
        time.sleep(0.1)
        assert stream.getvalue() == before
    assert log.getvalue() == ""


def test_of_two_computations_at_once_the_older_may_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER_S", 0.02)
    stream = Terminal()
    older, newer = Bar("older", "", stream), Bar("newer", "", stream)
    older.__enter__()
    newer.__enter__()
    until(lambda: screen(stream).startswith("newer, "))
    older.__exit__(None, None, None)
    assert screen(stream).startswith("newer, ")
    newer.__exit__(None, None, None)
    assert screen(stream) == ""
    before = stream.getvalue()
    time.sleep(0.1)
    assert stream.getvalue() == before


def test_what_begins_while_a_bar_is_drawn_writes_to_the_terminal_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER_S", 0.0)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar("outer", "strings", sys.stderr) as outer:
        outer(1, 10)
        assert sys.stderr is not stream  # rich's, which would end our line
        before = len(stream.getvalue())
        with Bar("check host", "MB", sys.stderr):
            until(lambda: screen(stream).startswith("check host, "))
        assert "\n" not in stream.getvalue()[before:].rpartition("\x1b[2Kcheck host")[2]


def test_a_line_is_never_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    waiting = Waiting("consolidate " + 64 * "x", stream, 0.0, every_s=0.005)
    until(lambda: screen(stream) != "")
    line = screen(stream)
    waiting.stop()
    assert len(line) == 39
    assert line.endswith("xxx..., 0 s")


def test_what_has_counted_all_says_that_it_is_finishing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "SHOW_AFTER_S", 0.0)
    stream, outer = Terminal(), Bar("prepare", "", Terminal())
    with outer, Bar("check host", "MB", stream) as bar:
        bar(100, 538)
        assert "100/538" in stream.getvalue()
        outer(1, 2)  # what is behind draws nothing
        bar(538, 538)
        until(lambda: screen(stream).startswith("check host: 538 MB done, finishing, "))
    assert screen(stream) == ""
    assert "1/2" not in stream.getvalue()


def test_a_terminal_that_is_gone_does_not_end_the_work() -> None:
    stream = Terminal()
    waiting = Waiting("prepare", stream, 0.0, every_s=0.005)
    until(lambda: screen(stream) != "")
    stream.close()
    time.sleep(0.05)
    waiting.stop()
