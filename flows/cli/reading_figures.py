"""Evaluating reading without an alignment from the command line, and its figures for people."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flows.cli.ask import pinned_last
from flows.cli.launch import orchestration
from flows.cli.replacement_figures import replacement_lines
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_reading(
    params: "Params", session: Session, *, snapshot: str | None, core: str | None, out: Path
) -> None:
    """Train the cross-reading of a core, or find it, evaluate it, and write reading.json."""
    _evaluate("reading", params, session, snapshot=snapshot, core=core, out=out)


def evaluate_replacement(
    params: "Params", session: Session, *, snapshot: str | None, core: str | None, out: Path
) -> None:
    """Swap a memory's version in a snapshot, evaluate before and after, and write replacement.json."""
    _evaluate("replacement", params, session, snapshot=snapshot, core=core, out=out)


def _evaluate(
    subject: Literal["reading", "replacement"],
    params: "Params",
    session: Session,
    *,
    snapshot: str | None,
    core: str | None,
    out: Path,
) -> None:
    """Run the flow of a subject, and write and show what it published."""
    from flows.settings import make_folder
    from store import Ref

    store = session.open_store()
    opened = store.snapshot(snapshot or pinned_last(session.settings.pins))
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_reading import evaluate_reading
        from flows.evaluate_replacement import evaluate_replacement

        flow = evaluate_reading if subject == "reading" else evaluate_replacement
        made = flow(params, settings, opened.id, core)
    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    summary = json.loads(store.read(evaluation))
    result = {**made, **summary, "costs": costs}
    path = out / f"{subject}.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    lines = reading_lines(result) if subject == "reading" else replacement_lines(result)
    session.emit(result, [*lines, f"wrote {path}"])


def reading_lines(result: dict[str, Any]) -> list[str]:
    """The figures of reading without an alignment, for people."""
    head = (
        f"{result['protocol']}: {result['tasks']:,} tasks from {result['documents']:,} documents, "
        f"{result['elements']} elements read"
    )
    latency = result["costs"].get("single_task_milliseconds", {})
    rows: list[tuple[str, ...]] = [
        ("evidence", "family", "nats per token", "greedy exact", "weight", "own there", "bytes", "ms a task")
    ]
    for name, found in result["conditions"].items():
        rows.append(
            (
                name.replace("_", " "),
                found["family"],
                _figure(found["nll"]),
                _figure(found["greedy_exact"]),
                f"{found['mean_weight']:.3f}",
                f"{found['own_document']:.3f}",
                f"{found['bytes_read']:,.0f}",
                f"{latency[name]:.1f}" if name in latency else "-",
            )
        )
    gains = [(name.replace("_", " "), _figure(found)) for name, found in result["gain"]["intervals"].items()]
    return [head, *columns(rows), "", *columns(gains)]


def _figure(figure: dict[str, float]) -> str:
    return f"{figure['value']:.4f} [{figure['low']:.4f}, {figure['high']:.4f}]"
