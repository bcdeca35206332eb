"""Commands on the local read cache: what it holds, and emptying it."""

from dataclasses import asdict
from typing import Any

from cyclopts import App

from flows.cli.store import Injected

app = App(name="cache", help="What this machine keeps of what it read from buckets (CELLAR_CACHE_DIR).")
_NONE = "no read cache is set up; CELLAR_CACHE_DIR names a folder for one, CELLAR_CACHE_BYTES its limit"


@app.default
def show(*, session: Injected) -> None:
    """Show the folder of the cache, what it holds and its limit."""
    cache = session.settings.read_cache()
    if cache is None:
        session.emit({"folder": None}, [_NONE])
        return
    usage = cache.usage()
    session.emit(
        asdict(usage),
        [f"{usage.folder}: {usage.entries:,} entries, {usage.bytes:,} of {usage.limit:,} bytes"],
    )


@app.command
def clear(*, session: Injected) -> None:
    """Remove everything from the cache; nothing else that lies in its folder."""
    cache = session.settings.read_cache()
    if cache is None:
        session.emit({"folder": None}, [_NONE])
        return
    removed = cache.clear()
    result: dict[str, Any] = {"folder": removed.folder, "removed": removed.entries, "bytes": removed.bytes}
    session.emit(result, [f"removed {removed.entries:,} entries, {removed.bytes:,} bytes"])
