"""Commands on evaluations: attach a snapshot's evidence to the core and measure, show what was measured."""

import json
import time
from pathlib import Path

from cyclopts import App

from flows.cli.demo import headlines
from flows.cli.launch import Injected, ParamsFile, Set, orchestration

app = App(name="eval", help="Attachment evaluations against a pinned snapshot.")
RESULTS = Path("results")


@app.command
def run(*, out: Path = RESULTS, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Evaluate the core against the pinned snapshot, and write summary, plots and report.

    Parameters
    ----------
    out
        Folder for summary.json, metrics.json, report.html and plots/.
    """
    from flows.evaluate_attachment import evaluate_attachment
    from flows.params import load_params
    from flows.pins import Stage, read_pin, write_pin
    from flows.report import write_report
    from flows.settings import make_folder
    from flows.summary import run_record, summarise, write_metrics, write_summary
    from flows.timing import work_seconds

    began = time.monotonic()
    chosen = load_params(params, set_ or ())
    folder = session.settings.pins
    before: tuple[Stage, ...] = ("corpus", "tokenizer", "codec", "memory", "indexes", "snapshot", "core")
    pins = {stage: read_pin(folder, stage) for stage in before}
    make_folder(out, "--out")
    store = session.open_store()
    tip = store.tip()
    with orchestration(session, session.settings) as settings:
        pin = evaluate_attachment(chosen, settings, pins["corpus"], pins["snapshot"], pins["core"])
    write_pin(folder, pin)
    found = ["evaluation"] if store.tip() == tip else []
    summary = summarise(store, {**pins, "evaluation": pin})
    wall_s = time.monotonic() - began
    spent = work_seconds(settings.work_dir, "evaluation", [pin], wall_s, found=bool(found))
    summary |= run_record(chosen, settings, {"evaluation": spent}, wall_s, found=found)
    written = [write_summary(summary, out), write_metrics(summary, out), write_report(summary, out)]
    session.emit(summary, [*headlines(summary), *(f"wrote {path}" for path in written)])


@app.command
def show(summary: Path | None = None, /, *, session: Injected) -> None:
    """Show the figures of an evaluation.

    Parameters
    ----------
    summary
        A summary.json, or the folder that holds one; otherwise results, or build/demo.
    """
    from flows.errors import UsageError

    path = _find(summary)
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
        lines = headlines(figures)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no summary of an evaluation; give a summary.json of cellar") from error
    session.emit(figures, lines)


def _find(given: Path | None) -> Path:
    from flows.errors import UsageError

    places = [given] if given is not None else [RESULTS, Path("build/demo")]
    for place in places:
        path = place / "summary.json" if place.is_dir() else place
        if path.is_file():
            return path
    where = " or ".join(str(place) for place in places)
    raise UsageError(f"no summary.json in {where}; run `cellar demo` or `cellar eval run` first")
