"""The command that compares a pinned readout, which is a cache, with what the memories decode to now."""

from dataclasses import asdict

from flows.cli.evidence import open_snapshot
from flows.cli.launch import Injected, ParamsFile, Set
from flows.formatting import columns

_SHOWN = 10


def audit(
    *, snapshot: str | None = None, params: ParamsFile = None, set_: Set = None, session: Injected
) -> None:
    """Decode the memories of a snapshot once more and compare the readout's record counts and checksums.

    Parameters
    ----------
    snapshot
        Which snapshot: its id, a tag or a head; otherwise the one that was pinned last.
    """
    from flows.params import load_params
    from store.errors import ElementNotFound
    from tasks.errors import StaleIndex
    from tasks.retrieval import audit_readout

    chosen = load_params(params, set_ or ())
    store = session.open_store()
    pinned = open_snapshot(session, snapshot)
    readouts = [row for row in pinned.rows("index") if row.name.endswith("/readout")]
    if not readouts:
        raise ElementNotFound(
            f"snapshot {pinned.id[:12]} holds no readout to audit; run `cellar index build` and pin what it "
            "makes"
        )
    found = {}
    for row in readouts:
        with session.progress("audit readout", "memories") as progress:
            found[row.name] = audit_readout(
                store, chosen.retrieval, snapshot=pinned, readout=row.ref, progress=progress
            )
    result = {
        "snapshot": pinned.id,
        "readouts": {name: {"passed": one.passed, **asdict(one)} for name, one in found.items()},
    }
    lines = [f"snapshot  {pinned.id}"]
    for name, one in found.items():
        wrong = [("damaged", one.damaged), ("changed", one.changed), ("missing", one.missing)]
        counts = [(what, f"{len(names):,}", " ".join(names[:_SHOWN])) for what, names in wrong]
        held = [("elements", f"{one.elements:,}", ""), ("tokens", f"{one.tokens:,}", "")]
        lines += [name, *columns([*held, *counts])]
    session.emit(result, lines)
    failed = [name for name, one in found.items() if not one.passed]
    if failed:
        raise StaleIndex(
            f"{failed[0]} is not what the memories of snapshot {pinned.id[:12]} decode to; build the indexes "
            "from this snapshot and pin the result"
        )
