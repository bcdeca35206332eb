"""Commands on evaluations: attach a snapshot's evidence to the core and measure, show what was measured."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from flows.cli.addressing_figures import (
    addressing_lines,
    evaluate_addressing,
    evaluate_questions,
    question_lines,
)
from flows.cli.demo import headlines
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.package import package as write_package
from flows.cli.package import reproduce
from flows.cli.rate_figures import evaluate_rate, rate_lines
from flows.cli.reading_figures import evaluate_reading, reading_lines
from flows.cli.replacement_figures import evaluate_replacement, replacement_lines
from flows.cli.session import Session
from flows.cli.skill_figures import evaluate_skills, skill_lines

if TYPE_CHECKING:
    from flows.params import Params
    from flows.pins import Pin, Stage
    from flows.settings import Settings

    Evaluate = Callable[[Settings], dict[Stage, Pin]]
    """Evaluates, and returns the pins of all stages."""

app = App(name="eval", help="Attachment evaluations against a pinned snapshot.")
app.command(write_package, name="package")
RESULTS = Path("results")
Subject = Literal[
    "attachment", "reading", "replacement", "audit", "addressing", "questions", "skills", "rate"
]


@app.command
def run(
    subject: Subject = "attachment",
    /,
    *,
    snapshot: str | None = None,
    core: str | None = None,
    data: Path | None = None,
    package: Path | None = None,
    out: Path = RESULTS,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Evaluate, and write what was measured into a folder.

    Parameters
    ----------
    subject
        attachment: the core against the pinned snapshot's memories, with summary, plots and report;
        reading: the same tasks without any alignment, where the core reads in what their text finds;
        replacement: the same tasks before and after another version of one memory stands in the snapshot;
        audit: attachment, and then what its documents share with the text that training saw, with the
        scores of the tasks that share nothing; addressing: how well the snapshot's index finds its
        memories, beside a dense and a lexical baseline; questions: how well paragraphs, made memories with
        its codec, are found by questions on them; skills: the arithmetic skills, built if they are not
        there; rate: what documents of the pinned corpus lose in cells of several widths and number formats.
    snapshot
        Evaluate this one, with what the store says about it, instead of what the pin files name: its id, at
        least eight digits of it, a tag or a head.
    core
        Against this core of the store, e.g. core/assembly; otherwise the newest one of the same parameters
        that reads the snapshot's codec, or a new one. Only with --snapshot.
    data
        A file of paragraphs and questions in the SQuAD layout, for questions.
    package
        Score what `cellar eval package` wrote instead, with nothing but that, and compare every loss with the
        packaged one; exit code 8 where one differs by more than processors do.
    out
        Folder for summary.json, metrics.json, report.html and plots/, or for reading.json, replacement.json,
        addressing.json, questions.json, skills.json, rate.json or reproduction.json.
    """
    from flows.errors import UsageError
    from flows.params import load_params

    if package is not None:
        if subject != "attachment" or snapshot or core or data or params or set_:
            raise UsageError("a package says itself what is evaluated; give --package alone, or with --out")
        reproduce(package, out, session)
        return
    chosen = load_params(params, set_ or ())
    if (subject == "questions") != (data is not None):
        raise UsageError("questions need a file of them, and nothing else does; give it with --data")
    if subject == "skills":
        if snapshot is not None or core is not None:
            raise UsageError("--snapshot and --core go with attachment; skills are named by their parameters")
        evaluate_skills(chosen, session, out)
        return
    if subject == "rate":
        if snapshot is not None or core is not None:
            raise UsageError("--snapshot and --core go with attachment; rate measures the pinned corpus")
        evaluate_rate(chosen, session, out)
        return
    if subject in ("addressing", "questions"):
        if core is not None:
            raise UsageError(f"--core goes with attachment; {subject} ask an index, and no core")
        if data is not None:
            evaluate_questions(chosen, session, data, snapshot=snapshot, out=out)
        else:
            evaluate_addressing(chosen, session, snapshot=snapshot, out=out)
        return
    if subject == "reading":
        evaluate_reading(chosen, session, snapshot=snapshot, core=core, out=out)
        return
    if subject == "replacement":
        evaluate_replacement(chosen, session, snapshot=snapshot, core=core, out=out)
        return
    evaluate_attachment(chosen, session, snapshot=snapshot, core=core, out=out, audited=subject == "audit")


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
    from flows.errors import UsageError
    from flows.report.page import write_report
    from flows.report.summary import run_record, summarise, write_metrics, write_summary
    from flows.settings import make_folder
    from flows.timing import work_seconds

    if core is not None and snapshot is None:
        raise UsageError("--core goes with --snapshot; without it the pin files say which core is meant")
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
    from flows.pins import Stage, read_pin, write_pin

    before: tuple[Stage, ...] = ("corpus", "tokenizer", "codec", "memory", "indexes", "snapshot", "core")
    pins = {stage: read_pin(session.settings.pins, stage) for stage in before}

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
    opened = store.snapshot(snapshot)  # no such snapshot is said before a server is started

    def evaluate(settings: "Settings") -> "dict[Stage, Pin]":
        made = evaluate_snapshot(params, settings, opened.id, core)
        corpora, evaluation = made["corpus"], [made["evaluation"], made["samples"]]
        return pins_of(
            store,
            opened,
            corpora=[Ref.parse(text) for text in corpora],
            core=Ref.parse(made["core"]),
            evaluation=[Ref.parse(text) for text in evaluation],
        )

    return evaluate


@app.command
def show(summary: Path | None = None, /, *, session: Injected) -> None:
    """Show the figures of an evaluation.

    Parameters
    ----------
    summary
        A summary.json, or the folder that holds one, an addressing.json, a questions.json or a skills.json;
        otherwise results, or build/demo.
    """
    from flows.errors import UsageError

    path = _find(summary)
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
        lines = _lines(figures)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is no summary of an evaluation; give a summary.json of cellar") from error
    session.emit(figures, lines)


def _lines(figures: dict[str, Any]) -> list[str]:
    """The figures of any evaluation, for people."""
    if "routing" in figures:
        return skill_lines(figures)
    if "weights" in figures:
        return question_lines(figures)
    if "replaced" in figures:
        return replacement_lines(figures)
    if "reading" in figures:
        return reading_lines(figures)
    if "points" in figures:
        return rate_lines(figures)
    return addressing_lines(figures) if "searchers" in figures else headlines(figures)


def _find(given: Path | None) -> Path:
    from flows.errors import UsageError

    places = [given] if given is not None else [RESULTS, Path("build/demo")]
    for place in places:
        path = place / "summary.json" if place.is_dir() else place
        if path.is_file():
            return path
    where = " or ".join(str(place) for place in places)
    raise UsageError(f"no summary.json in {where}; run `cellar demo` or `cellar eval run` first")
