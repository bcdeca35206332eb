"""Prefect's runner of scheduled runs: it may be told to stop more than once, and tells nobody of a stop."""

from typing import Any

from prefect.runner import Runner

from flows.notices import notify


class StoppableRunner(Runner):
    """Ends the runs that it started at the first signal, and is not broken off in that by a second one."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """Begin to stop, unless that is under way: Prefect would leave at once, and its runs running."""
        if self.stopping:
            return
        if self.started:  # Prefect says of each process that it then ends that it crashed, at first
            notify.stopping.set()
        super().handle_sigterm(*args, **kwargs)
