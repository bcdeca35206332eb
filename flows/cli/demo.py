"""The command that runs the whole chain and writes its report."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.audit_figures import leakage_lines
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.settings import Settings


def demo(
    *, out: Path = Path("build/demo"), params: ParamsFile = None, set_: Set = None, session: Injected
) -> None:
    """Run the whole chain on this machine, from documents to an evaluated snapshot and an HTML report.

    Store, pins and scratch space lie in the output folder, unless CELLAR_STORE (or --store), CELLAR_PINS or
    CELLAR_WORK_DIR names another place. Run again to continue where an interrupted run stopped; finished
    stages take seconds.

    Parameters
    ----------
    out
        Where the report and the summary go, and by default the store.
    """
    began = time.monotonic()
    from flows.params import load_params
    from flows.settings import make_folder

    chosen = load_params(params, set_ or ())
    make_folder(out, "--out")
    settings = demo_settings(session, out)
    with orchestration(session, settings, announcer=_announce(session)):
        from flows.demo import demo as flow
        from flows.pins import Pin
        from flows.report.page import write_report
        from flows.report.summary import run_record, summarise, write_summary

        result: dict[str, Any] = flow(chosen, settings)
    from store import Store

    pins: dict[Any, Pin] = {stage: Pin.model_validate(pin) for stage, pin in result["pins"].items()}
    summary = summarise(Store.open(settings.store), pins)
    wall_s = time.monotonic() - began
    summary |= run_record(chosen, settings, result["seconds"], wall_s, found=result["found"])
    written = [write_summary(summary, out), write_report(summary, out)]
    session.emit(summary, [*headlines(summary), *(f"wrote {path}" for path in written)])


def headlines(summary: dict[str, Any]) -> list[str]:
    """The figures that matter most, for people."""
    codec, retrieval, gain = summary["codec"], summary["retrieval"], summary["gain"]
    low, high = gain["ci95"]
    skipped = summary["corpus"].get("skipped", 0)
    unread = f", {skipped:,} skipped while reading" if skipped else ""
    rows = [
        ("documents", f"{summary['published']:,} published, {summary['rejected']:,} rejected{unread}"),
        ("codec", _named(codec, "token_recall", "span8_exact")),
        ("retrieval", _named(retrieval, "candidate_recall", "recall_at_1")),
        ("", f"{retrieval['queries_per_second']:,.0f} queries/s"),
        ("nats per token", _named(summary["nll"])),
        ("greedy exact", _named(summary["greedy_exact"])),
        ("gain in nats", _named(gain, "document_specific", "generic")),
        ("", f"document-specific share {gain['document_specific_share']:.3f} [{low:.3f}, {high:.3f}]"),
        *_system_rows(summary),
    ]
    total = f"{summary['wall_s']:.0f} s in all, peak memory {summary['peak_rss_mb']:,.0f} MiB"
    found: list[str] = summary.get("found") or []
    times = f"found in the store: {', '.join(found)}; their times are those of the runs that did the work"
    return [
        f"snapshot {summary['snapshot']}",
        *columns(rows),
        *leakage_lines(summary),
        total,
        *([times] if found else []),
    ]


def _system_rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What the system makes of evidence that it found, beside the raw text of the same documents."""
    gain = summary["gain"]
    if "storage" not in summary:  # evaluated before this was measured
        return []
    cost, part = gain["intervals"]["weighed_cost"], gain["intervals"]["of_raw_text"]
    rows = [
        ("weighed wrong costs", f"{cost['value']:.4f} nats [{cost['low']:.4f}, {cost['high']:.4f}]"),
        ("of raw text's gain", f"{part['value']:.4f} [{part['low']:.4f}, {part['high']:.4f}]"),
    ]
    for condition, name in (("retrieved", "reading memories"), ("raw_text", "reading raw text")):
        found = summary["conditions"][condition]
        rows.append((name, f"{found['bytes_read']:,.0f} bytes, {found['latency_ms']:.1f} ms a task"))
    return rows


def _named(figures: dict[str, float], *names: str) -> str:
    """Chosen figures with their names, or all of them."""
    return ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4f}" for name in names or figures)


def demo_settings(session: Session, out: Path) -> "Settings":
    """The settings of a demo: what nobody set of its store, pins and scratch space lies in a folder."""
    defaults = {"store": f"file:{out / 'store'}", "pins": out / "pins", "work_dir": out / "work"}
    chosen = session.settings.model_fields_set
    return session.settings.model_copy(
        update={name: place for name, place in defaults.items() if name not in chosen}
    )


def _announce(session: Session) -> Any:
    def announce(stage: str, seconds: float) -> None:
        if not session.quiet:
            with suppress(BrokenPipeError):  # nobody reads the progress: the work goes on
                print(f"{stage:<12}{seconds:8.1f} s", file=sys.stderr, flush=True)

    return announce
