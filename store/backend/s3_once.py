"""Deletions, of which no copy may be under way when they are done.

A copy of a request that timed out may wait in a proxy and arrive after a later copy was answered. Reads and
content-addressed writes bear that; a deletion would remove what somebody has written again since. So it is
sent again only if it was certainly not done; whoever meets any other error knows that it may still happen,
as `store.gc.turn` must.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from botocore import exceptions as boto

from store.backend.s3_errors import certainly_not_done

_FIRST_PAUSE_S = 0.05
_JITTER = secrets.SystemRandom()


def send_until_known(send: Callable[[], object], attempts: int) -> None:
    """Call `send`, which must not repeat anything itself, until it succeeds or its outcome is not known."""
    for number in range(1, attempts + 1):
        try:
            send()
            return
        except (boto.BotoCoreError, boto.ClientError) as error:
            if number == attempts or not certainly_not_done(error):
                raise
        # Jitter only spreads retries in time; it takes no part in any result.
        time.sleep(_JITTER.uniform(0.0, _FIRST_PAUSE_S * 2**number))
