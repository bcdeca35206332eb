"""Evaluating addressing from the command line, and its figures for people."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_addressing(params: "Params", session: Session, *, snapshot: str | None, out: Path) -> None:
    """Evaluate the index of a snapshot, or of the pin files, and write addressing.json."""
    from flows.pins import read_pin
    from flows.settings import make_folder
    from store import Ref

    corpus = None
    if snapshot is None:
        corpus = list(read_pin(session.settings.pins, "corpus").refs)
        snapshot = read_pin(session.settings.pins, "snapshot").snapshot
        assert snapshot is not None, "the snapshot stage pins a snapshot"
    identity = session.open_store().snapshot(snapshot).id  # no such snapshot: said before a server is started
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_addressing import evaluate_addressing as flow

        made = flow(params, settings, identity, corpus)
    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    summary = json.loads(store.read(evaluation))
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    result = {"evaluation": made["evaluation"], "samples": made["samples"], **summary, "costs": costs}
    path = out / "addressing.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    session.emit(result, [*addressing_lines(result), f"wrote {path}"])


def addressing_lines(result: dict[str, Any]) -> list[str]:
    """The table of an evaluation of addressing, for people: shares with intervals, and rates."""
    head = f"{result['protocol']}: {result['tasks']:,} tasks from {result['documents']:,} documents"
    rows: list[tuple[str, ...]] = [
        ("kind", "changed", "searcher", "candidate recall", "recall at 1", "the same cue", "the very element")
    ]
    for row in result["table"]:
        shown = (
            _share(row[name])
            for name in ("candidate_recall", "recall_at_1", "recall_at_1_cue", "recall_at_1_named")
        )
        rows.append((row["kind"], f"{row['corruption']:.0%}", row["searcher"], *shown))
    rates: list[tuple[str, ...]] = [("searcher", "changed", "queries/s", "p50 ms", "p99 ms")]
    for searcher, by_share in result["costs"]["rates"].items():
        for share, rate in by_share.items():
            figures = (f"{rate['queries_per_second']:,.0f}", f"{rate['p50_ms']:.2f}", f"{rate['p99_ms']:.2f}")
            rates.append((searcher, f"{float(share):.0%}", *figures))
    return [head, *columns(rows), *columns(rates)]


def _share(figure: dict[str, float]) -> str:
    return f"{figure['value']:.4f} [{figure['low']:.4f}, {figure['high']:.4f}]"
