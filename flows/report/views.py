"""What the report shows of the summary besides conditions and texts: headline figures, tables, stages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from flows.formatting import count, nats, number, section, share
from flows.pins import Stage
from flows.report.conditions import ConditionRow

MOST_REJECTED = 100


@dataclass(frozen=True)
class Tile:
    """A headline figure."""

    label: str
    value: str
    note: str


def tiles(summary: Mapping[str, Any], rows: Sequence[ConditionRow]) -> list[Tile]:
    """The headline figures that the summary has."""
    by_name = {row.name: row for row in rows}
    found = [
        Tile(
            "memories published",
            count(summary["published"]),
            f"{count(summary['rejected'])} rejected, {count(summary['documents'])} documents in all",
        )
    ]
    codec, retrieval = section(summary, "codec"), section(summary, "retrieval")
    if number(codec.get("token_recall")) is not None:
        stored = (
            f" at {count(codec['cell_bytes_per_block'])} B a block" if "cell_bytes_per_block" in codec else ""
        )
        found.append(
            Tile("tokens read back right", share(codec["token_recall"]), f"worker documents{stored}")
        )
    if number(retrieval.get("recall_at_1")) is not None:
        dense = section(retrieval, "dense").get("recall_at_1")
        note = f"{share(dense)} with dense keys alone" if number(dense) is not None else "of cues"
        found.append(Tile("right element first", share(retrieval["recall_at_1"]), note))
    none, retrieved = by_name.get("none"), by_name.get("retrieved")
    if none and retrieved and none.nll is not None and retrieved.nll is not None:
        found.append(
            Tile(
                "log loss with retrieved memory",
                nats(retrieved.nll),
                f"nats per target token; {nats(none.nll)} without",
            )
        )
    if retrieved and retrieved.greedy_exact is not None:
        alone = f"{share(none.greedy_exact)} without" if none and none.greedy_exact is not None else "greedy"
        found.append(Tile("continuations exactly right", share(retrieved.greedy_exact), alone))
    gain = section(summary, "gain")
    if number(gain.get("document_specific_share")) is not None:
        found.append(
            Tile(
                "of the gain is document-specific",
                share(gain["document_specific_share"]),
                "right against wrong",
            )
        )
    return found


def stages(summary: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Seconds of each stage, in the chain's order; unknown stages follow by name."""
    timed = section(summary, "stages")
    known = [name for name in get_args(Stage) if name in timed]
    seconds = [(name, number(timed[name])) for name in known + sorted(set(timed) - set(known))]
    return [(name, value) for name, value in seconds if value is not None]


def reasons(summary: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Why documents were skipped, the most frequent reason first."""
    counted = section(section(summary, "corpus"), "reasons")
    return sorted(counted.items(), key=lambda item: (-(number(item[1]) or 0), item[0]))


def references(summary: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The elements behind the figures, by their role."""
    refs = section(summary, "refs")
    return [
        (role, [refs[role]] if isinstance(refs[role], str) else list(refs[role] or ()))
        for role in sorted(refs)
    ]


def accounts(summary: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Rows of the accounting table by category, both in their given order."""
    rows = list(summary.get("accounting") or ())
    names = list(dict.fromkeys(row["category"] for row in rows))
    return [(name, [row for row in rows if row["category"] == name]) for name in names]
