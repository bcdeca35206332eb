"""A folder that is served already is refused before anything else is looked at."""

import os
from collections.abc import Callable
from pathlib import Path

from flows.serving.lock import serve_lock

Cellar = Callable[..., tuple[int, str, str]]


def test_a_second_server_is_refused_before_deployments_are_read(cellar: Cellar, workplace: Path) -> None:
    with serve_lock(workplace / "build/work/prefect") as lock:
        lock.announce("http://127.0.0.1:1/api", None)
        code, _, err = cellar("serve")
    assert code == 7
    assert f"process {os.getpid()} serves it at http://127.0.0.1:1/api" in err
    assert cellar("serve")[0] == 2
