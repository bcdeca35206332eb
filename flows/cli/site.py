"""The command that writes a store's static site."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from flows.cli.launch import Injected
from flows.cli.session import Session

if TYPE_CHECKING:
    from flows.runs.listing import Run

app = App(name="site", help="A store as pages to look at: from a file, without a server.")
_MIB = 1024**2


@app.command
def build(
    *,
    out: Path = Path("build/site"),
    snapshots: Annotated[int, Parameter(validator=Number(gte=0))] = 50,
    head: str | None = None,
    text: Annotated[bool, Parameter(negative="--no-text")] = True,
    runs: Annotated[bool, Parameter(negative="--no-runs")] = True,
    text_mib: Annotated[int, Parameter(validator=Number(gte=1))] = 64,
    session: Injected,
) -> None:
    """Write pages about snapshots, differences, evaluations, elements and runs, and a search by name.

    Parameters
    ----------
    out
        The folder of the site. It is replaced as a whole once the new one is complete; other folders are
        refused.
    snapshots
        Pages for this many of the newest snapshots; 0 for all.
    head
        Only snapshots that this head pointed to.
    text
        Show what memories decode to, with the decoder's confidence.
    runs
        Show the runs of flows that the Prefect API knows, beside what the store's log tells.
    text_mib
        Texts on the site take this many MiB at the most; the pages say where one is left out.
    """
    from flows.formatting import counted, size
    from flows.site import SiteOptions, build_site
    from flows.site.folder import SiteFolder

    options = SiteOptions(snapshots, head, text_mib * _MIB if text else 0)
    store = session.open_store()
    SiteFolder(out).check()  # before an API is started that knows the runs
    try:
        known = _runs(session) if runs else None
        with session.progress("build site", "steps") as progress:
            report = build_site(store, out, options, runs=known, progress=progress, warn=session.warn)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(f"{out} is as it was; run the same command again") from interrupt
    lines = [
        f"{counted(report.snapshots, 'snapshot')}, {counted(report.elements, 'element')}, "
        f"{counted(report.texts, 'decoded text')}"
        + (f" ({report.texts_left_out:,} left out)" if report.texts_left_out else ""),
        f"wrote {counted(report.files, 'file')} with {size(report.bytes)}; open {out / 'index.html'}",
    ]
    session.emit({"out": str(out), **asdict(report)}, lines)


def _runs(session: Session) -> "list[Run] | None":
    """The newest runs that the Prefect API knows; None where none ever ran or no API answers."""
    from flows.cli.runs import known_api
    from flows.errors import PrefectServerError
    from flows.site import MOST_RUNS

    try:
        with known_api(session) as known:
            if not known:
                return None
            from flows.runs.listing import list_runs

            return list_runs(limit=MOST_RUNS)
    except PrefectServerError as error:
        session.warn(f"the runs of flows are left out: {error}")
        return None
