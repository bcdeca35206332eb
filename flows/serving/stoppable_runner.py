"""Prefect's runner of scheduled runs, made to stop well: told twice, quietly, and what is over stays so."""

from contextlib import suppress
from typing import Any

import anyio
import httpx
from prefect.client.orchestration import get_client
from prefect.runner import Runner

from flows.notices import notify

_ENDING_S = 10.0
"""How long a process may take to end after its run did."""
_LOOK_S = 0.1


class StoppableRunner(Runner):
    """Ends the runs that it started at the first signal, and is not broken off in that by a second one."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """Begin to stop, unless that is under way: Prefect would leave at once, and its runs running."""
        if self.stopping:
            return
        if self.started:  # Prefect says of each process that it then ends that it crashed, at first
            notify.stopping.set()
        super().handle_sigterm(*args, **kwargs)

    async def cancel_all(self) -> None:
        """End the runs that are at work.

        Prefect would call every run cancelled whose process is still there, also one that has just completed,
        and that would be done again: such a process may end by itself first.
        """
        with suppress(httpx.HTTPError), anyio.move_on_after(_ENDING_S):
            while await self._some_are_only_ending():
                await anyio.sleep(_LOOK_S)
        await super().cancel_all()

    async def _some_are_only_ending(self) -> bool:
        async with get_client() as client:
            for identity in self._process_manager.flow_run_ids():
                state = (await client.read_flow_run(identity)).state
                if state is not None and state.is_final():
                    return True
        return False
