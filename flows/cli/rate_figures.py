"""Rate-distortion from the command line, and its figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_rate(params: "Params", session: Session, out: Path) -> None:
    """Measure the pinned corpus in cells of every width and format, or find it measured; write rate.json."""
    from flows.pins import read_pin
    from flows.settings import make_folder

    corpus, tokenizer = (read_pin(session.settings.pins, stage) for stage in ("corpus", "tokenizer"))
    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_rate import evaluate_rate as flow

        made = flow(params, settings, corpus, tokenizer)
    show_published(session, made, out, RATE)


def rate_lines(result: dict[str, Any]) -> list[str]:
    """The figures of every point, and recall by rarity and by position, for people."""
    rows: list[tuple[str, ...]] = [
        ("numbers", "format", "bytes a block", "token recall", "spans", "nats", "steps a block", "published")
    ]
    rare: list[tuple[str, ...]] = []
    place: list[tuple[str, ...]] = []
    for point in result["points"]:
        name = (str(point["width"]), point["dtype"])
        recall, spans = f"{point['token_recall']:.4f}", f"{point['span8_exact']:.4f}"
        rest = (f"{point['loss']:.4f}", f"{point['steps_per_block']:.1f}", f"{point['published']:.3f}")
        rows.append((*name, f"{point['bytes_per_block']:,}", recall, spans, *rest))
        rare.append((*name, *(_recall(one) for one in point["by_rarity"])))
        place.append((*name, *(_recall(one) for one in point["by_position"])))
    first = result["points"][0]
    seen = tuple(_range(one["seen_from"], one["seen_to"]) for one in first["by_rarity"])
    places = tuple(_range(one["from"], one["to"]) for one in first["by_position"])
    raw = result["raw_id_bytes_per_block"]
    return [
        f"{result['documents']} documents that no codec saw; raw ids of a block are {raw} bytes",
        *columns(rows),
        "",
        "recall by how often training saw the token",
        *columns([("numbers", "format", *seen), *rare]),
        "",
        "recall by place in the block",
        *columns([("numbers", "format", *places), *place]),
        "",
        *_verdicts(result),
    ]


def _verdicts(result: dict[str, Any]) -> list[str]:
    smallest, int8 = result["smallest"], result["int8"]
    point = smallest["point"]
    reached = "none" if point is None else f"{point['width']} numbers, {point['dtype']}"
    lines = [f"smallest cell with token recall {smallest['least_recall']}: {reached}"]
    if int8 is not None:
        lost = f"{100 * int8['token_recall_lost']:.3f} points of token recall"
        lines.append(f"int8 loses {lost} against bfloat16 at {int8['width']} numbers")
    return lines


def _recall(one: dict[str, Any]) -> str:
    return "-" if one["token_recall"] is None else f"{one['token_recall']:.4f}"


def _range(start: int, end: int | None) -> str:
    if end is None:
        return f"{start}+"
    return str(start) if start == end else f"{start}-{end}"


RATE = Figures("rate.json", "points", rate_lines)
