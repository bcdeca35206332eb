"""Prefect's runner of scheduled runs, which may be told to stop more than once."""

from typing import Any

from prefect.runner import Runner


class StoppableRunner(Runner):
    """Ends the runs that it started at the first signal, and is not broken off in that by a second one."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """Begin to stop, unless that is under way: Prefect would leave at once, and its runs running."""
        if not self.stopping:
            super().handle_sigterm(*args, **kwargs)
