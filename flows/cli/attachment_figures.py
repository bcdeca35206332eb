"""Evaluating attachment from the command line: of the pin files or of any snapshot, with its report."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.demo import headlines
from flows.cli.evidence import exact_core, indexed_snapshot, read_pinned
from flows.cli.launch import orchestration
from flows.cli.published import Figures
from flows.cli.session import Session

if TYPE_CHECKING:
    from flows.params import Params
    from flows.pins import Pin, Stage
    from flows.settings import Settings

    Evaluate = Callable[[Settings], dict[Stage, Pin]]
    """Evaluates, and returns the pins of all stages."""

SUMMARY = Figures("summary.json", "retrieval", headlines)


def evaluate_attachment(
    chosen: "Params",
    session: Session,
    *,
    snapshot: str | None,
    core: str | None,
    out: Path,
    audited: bool = False,
) -> None:
    """Evaluate the core against the memories of a snapshot, or of the pin files, and write the report.

    An audit of the evaluation that the store has is part of it; with `audited` one is made.
    """
    from flows.report.page import write_report
    from flows.report.summary import run_record, summarise, write_metrics, write_summary
    from flows.settings import make_folder
    from flows.timing import work_seconds

    began = time.monotonic()
    evaluate = _of_pins(chosen, session) if snapshot is None else _of_store(chosen, session, snapshot, core)
    store = session.open_store()
    make_folder(out, "--out")
    tip = store.tip()
    with orchestration(session, session.settings) as settings:
        pins = evaluate(settings)
        found = ["evaluation"] if store.tip() == tip else []
        if audited:
            from flows.audit_evaluation import audit_evaluation

            audit_evaluation(chosen, settings, pins["evaluation"].refs[0])
    summary = summarise(store, pins)
    wall_s = time.monotonic() - began
    spent = work_seconds(settings.work_dir, "evaluation", [pins["evaluation"]], wall_s, found=bool(found))
    summary |= run_record(chosen, settings, {"evaluation": spent}, wall_s, found=found)
    written = [write_summary(summary, out), write_metrics(summary, out), write_report(summary, out)]
    session.emit(summary, [*headlines(summary), *(f"wrote {path}" for path in written)])


def _of_pins(params: "Params", session: Session) -> "Evaluate":
    """Evaluate what the pin files name, and leave the pin of the evaluation."""
    from flows.evaluate_attachment import evaluate_attachment
    from flows.pins import Stage, write_pin

    before: tuple[Stage, ...] = ("corpus", "tokenizer", "codec", "memory", "indexes", "snapshot", "core")
    pins = read_pinned(session, *before)
    # Both are there and go together, or it is said before a server is started.
    exact_core(session, indexed_snapshot(session, pins["snapshot"].snapshot), str(pins["core"].one("core")))

    def evaluate(settings: "Settings") -> "dict[Stage, Pin]":
        pin = evaluate_attachment(params, settings, pins["corpus"], pins["snapshot"], pins["core"])
        write_pin(settings.pins, pin)
        return {**pins, "evaluation": pin}

    return evaluate


def _of_store(params: "Params", session: Session, snapshot: str, core: str | None) -> "Evaluate":
    """Evaluate a snapshot with what the store says about it."""
    from flows.evaluate_snapshot import evaluate_snapshot
    from flows.provenance.pins import pins_of
    from store import Ref

    store = session.open_store()
    opened = indexed_snapshot(session, snapshot)
    exact = exact_core(session, opened, core)

    def evaluate(settings: "Settings") -> "dict[Stage, Pin]":
        made = evaluate_snapshot(params, settings, opened.id, exact)
        corpora, evaluation = made["corpus"], [made["evaluation"], made["samples"]]
        return pins_of(
            store,
            opened,
            corpora=[Ref.parse(text) for text in corpora],
            core=Ref.parse(made["core"]),
            evaluation=[Ref.parse(text) for text in evaluation],
        )

    return evaluate
