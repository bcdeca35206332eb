"""Progress on stderr: a bar with rate and time left on a terminal, a plain line now and then in a log.

A terminal shows one thing at a time: what was begun last. While that counts nothing, or has counted all, it
says so in a line with the seconds; when it ends, what it is a part of comes back.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from flows.cli.waiting import Waiting

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

SHOW_AFTER_S = 2.0
"""What is done sooner needs no bar."""
LINE_EVERY_S = 10.0
_open: list["Bar"] = []
"""What was begun on terminals and has not ended, the last one in front."""
_drawing = threading.RLock()


class Bar:
    """A progress callback for one computation; a context manager that removes the bar at the end."""

    def __init__(
        self, title: str, unit: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title = title
        self._unit = unit
        # While a bar is drawn, stderr is what rich puts in its place, which would end our lines.
        self._stream: TextIO = getattr(stream, "rich_proxied_file", stream)
        self._clock = clock
        self._start = clock()
        self._next_line = self._start + SHOW_AFTER_S
        self._terminal = stream.isatty()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._waiting: Waiting | None = None

    def __enter__(self) -> Self:
        if self._terminal:
            with _drawing:
                if _open:
                    _open[-1]._hide()
                _open.append(self)
                self._wait(self._title)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            with _drawing:
                self._hide()
                in_front = _open[-1] is self
                _open.remove(self)
                if in_front and _open:
                    _open[-1]._wait(_open[-1]._title)

    def __call__(self, done: int, total: int, **figures: float) -> None:
        """Show `done` of `total` (0: unknown) and the figures, unless it is too early."""
        now = self._clock()
        if now < self._start + SHOW_AFTER_S:
            return
        if self._terminal:
            with _drawing:
                if _open and _open[-1] is self:
                    self._show(done, total, figures)
        elif now >= self._next_line:
            self._next_line = now + LINE_EVERY_S
            with suppress(BrokenPipeError):  # nobody reads the progress: the work goes on
                print(self.line(done, total, figures), file=self._stream, flush=True)

    def line(self, done: int, total: int, figures: dict[str, float]) -> str:
        """The state in words, for logs."""
        rate = done / max(self._clock() - self._start, 1e-9)
        count = f"{done:,} of {total:,} {self._unit}" if total else f"{done:,} {self._unit}"
        left = f", {(total - done) / rate:,.0f} s left" if total > done and rate > 0 else ""
        return f"{self._title}: {count} ({_rate(rate)}{left}){_figures(figures)}"

    def _show(self, done: int, total: int, figures: dict[str, float]) -> None:
        """The bar; where all is counted, that what comes after the count is being waited for."""
        if done < total or not total:
            if self._waiting is not None:
                self._hide()
            self._draw(done, total, figures)
        elif self._waiting is None or self._bar is not None:
            self._wait(f"{self._title}: {total:,} {self._unit} done, finishing")

    def _wait(self, title: str) -> None:
        self._hide()
        self._waiting = Waiting(title, self._stream, SHOW_AFTER_S)

    def _hide(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self, done: int, total: int, figures: dict[str, float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        rate = _rate(done / max(self._clock() - self._start, 1e-9))
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self._unit),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[figures]}"),
                console=Console(file=self._stream),
                transient=True,
            )
            self._task = self._bar.add_task(
                self._title, completed=done, total=total or None, rate=rate, figures=""
            )
            self._bar.start()
        assert self._task is not None, "the task is made with the bar"
        self._bar.update(
            self._task, completed=done, total=total or None, rate=rate, figures=_figures(figures).strip()
        )


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"


def _figures(figures: dict[str, float]) -> str:
    return "".join(f"  {name} {value:.4g}" for name, value in figures.items())
