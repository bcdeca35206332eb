"""A line on a terminal while nothing is counted: what goes on, and for how many seconds."""

import shutil
import threading
import time
from contextlib import suppress
from typing import TextIO

_EVERY_S = 1.0
_CLEAR = "\r\x1b[2K"


class Waiting:
    """Shows a title with the seconds so far, from `after_s` seconds on, until `stop` takes it away.

    A thread of its own draws, since whoever computes says nothing meanwhile. A stream that is gone ends it.
    """

    def __init__(self, title: str, stream: TextIO, after_s: float, every_s: float = _EVERY_S) -> None:
        self._title, self._stream, self._after_s, self._every_s = title, stream, after_s, every_s
        self._began = time.monotonic()
        self._lock, self._stopped, self._shown = threading.Lock(), threading.Event(), False
        threading.Thread(target=self._draw, name="waiting", daemon=True).start()

    def stop(self) -> None:
        """Take the line away; nothing is drawn after that."""
        with self._lock:
            self._stopped.set()
            if self._shown:
                self._shown = False
                self._write(_CLEAR)

    def _draw(self) -> None:
        pause = self._after_s
        while not self._stopped.wait(pause):
            pause = self._every_s
            with self._lock:
                if self._stopped.is_set():
                    return
                self._shown = True
                self._write(f"{_CLEAR}{self._line()}\r")  # what others print goes over it

    def _line(self) -> str:
        """Title and seconds, never as wide as the terminal: of a line that wraps, one row would stay."""
        seconds = f", {time.monotonic() - self._began:.0f} s"
        room = shutil.get_terminal_size().columns - 1 - len(seconds)
        title = self._title if len(self._title) <= room else f"{self._title[: max(0, room - 3)]}..."
        return title + seconds

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
