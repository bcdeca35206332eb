"""Races that can be repeated: threads of which exactly one runs, handing over where a seed says.

A thread hands over only in `pause`, which the backends of a test call before every call of the storage. So
one seed is one order of those calls, whatever the machine does meanwhile.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

_LIMIT_S = 60.0
_EAGERNESS = (0.1, 0.4, 1.0)
"""How likely a pause hands over: long runs with few changes find other races than a change at every call."""


class Scheduler:
    """Runs functions as threads that take turns."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._eagerness = self._random.choice(_EAGERNESS)
        self._turns: dict[int, threading.Event] = {}
        self._waiting: list[int] = []
        self._finished = threading.Event()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run all `tasks` to their ends; what one of them raises is raised here."""
        errors: list[BaseException] = []
        threads = []
        started = threading.Barrier(len(tasks) + 1)

        def body(task: Callable[[], None]) -> None:
            me = threading.get_ident()
            turn = self._turns[me] = threading.Event()
            started.wait()
            _wait(turn)
            try:
                task()
            except BaseException as error:  # noqa: BLE001 - raised again by `run`
                errors.append(error)
            finally:
                del self._turns[me]
                self._hand_over()

        for task in tasks:
            thread = threading.Thread(target=body, args=(task,), daemon=True)
            threads.append(thread)
            thread.start()
        started.wait()
        # In the order in which they were started: thread numbers differ from run to run.
        self._waiting = [thread.ident or 0 for thread in threads]
        self._hand_over()
        _wait(self._finished)
        for thread in threads:
            thread.join(_LIMIT_S)
        if errors:
            raise errors[0]

    def pause(self) -> None:
        """Let another thread run now, or not. Threads that are not of this scheduler pass."""
        me = threading.get_ident()
        turn = self._turns.get(me)
        if turn is None or self._random.random() >= self._eagerness:
            return
        self._waiting.append(me)
        self._hand_over()
        _wait(turn)

    def _hand_over(self) -> None:
        if not self._waiting:
            self._finished.set()
            return
        chosen = self._waiting.pop(self._random.randrange(len(self._waiting)))
        turn = self._turns[chosen]
        turn.set()


def _wait(event: threading.Event) -> None:
    if not event.wait(_LIMIT_S):
        raise TimeoutError("a thread that another one waits for did not come back")
    event.clear()
