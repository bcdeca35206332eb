"""Evaluating reading without an alignment from the command line, and its figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.evidence import snapshot_and_core
from flows.cli.launch import orchestration
from flows.cli.published import Figures, ranged, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params

_GAINS = {
    "retrieved": ("retrieved elements lower the loss by", "nats"),
    "raw_text": ("the raw text of the same documents lowers it by", "nats"),
    "of_raw_text": ("gain of retrieved elements, as a part of raw text's", "share"),
    "document_specific": ("the wrong elements cost, over the right one", "nats"),
    "generic": ("the wrong elements gain, over none", "nats"),
    "share": ("part of the right one's gain that its own document makes", "share"),
    "weighed_cost": ("the wrong elements cost once they are weighed, over none", "nats"),
    "weighed_share": ("the document's own part, where wrong ones are weighed", "share"),
}
"""What each gain of a summary says (`tasks.evaluation`), in the order of the questions that people have."""
_LEGEND = (
    "weight: what the text gives to what it read, 0 to 1; own there: tasks whose own document is among that; "
    "intervals over documents"
)


def evaluate_reading(
    params: "Params", session: Session, *, snapshot: str | None, core: str | None, out: Path
) -> None:
    """Train the cross-reading of a core, or find it, evaluate it, and write reading.json."""
    from flows.settings import make_folder

    opened, exact = snapshot_and_core(params, session, snapshot, core)
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_reading import evaluate_reading as flow

        made = flow(params, settings, opened.id, exact)
    show_published(session, made, out, READING)


def reading_lines(result: dict[str, Any]) -> list[str]:
    """The figures of reading without an alignment, for people."""
    head = (
        f"{result['protocol']}: {result['tasks']:,} tasks from {result['documents']:,} documents, "
        f"{result['elements']} elements read, wrong ones {result['wrong']}"
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
                ranged(found["nll"]),
                ranged(found["greedy_exact"]),
                f"{found['mean_weight']:.3f}",
                f"{found['own_document']:.3f}",
                f"{found['bytes_read']:,.0f}",
                f"{latency[name]:.1f}" if name in latency else "-",
            )
        )
    intervals = result["gain"]["intervals"]
    gains = [
        (label, ranged(intervals[name]), unit) for name, (label, unit) in _GAINS.items() if name in intervals
    ]
    return [head, *columns(rows), _LEGEND, "", *columns(gains)]


READING = Figures("reading.json", "wrong", reading_lines)
