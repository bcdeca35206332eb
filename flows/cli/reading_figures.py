"""Evaluating reading without an alignment from the command line, and its figures for people."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.ask import pinned_last
from flows.cli.launch import orchestration
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_reading(
    params: "Params", session: Session, *, snapshot: str | None, core: str | None, out: Path
) -> None:
    """Train the cross-reading of a core, or find it, evaluate it, and write reading.json."""
    from flows.settings import make_folder
    from store import Ref

    store = session.open_store()
    opened = store.snapshot(snapshot or pinned_last(session.settings.pins))
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_reading import evaluate_reading as flow

        made = flow(params, settings, opened.id, core)
    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    summary = json.loads(store.read(evaluation))
    result = {**made, **summary, "costs": costs}
    path = out / "reading.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    session.emit(result, [*reading_lines(result), f"wrote {path}"])


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
