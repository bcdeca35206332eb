"""An evaluation of reading without an alignment as the report tells it: figures and weights by condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import number, section
from flows.report.conditions import FAMILIES, family_of, in_reading_order, label
from flows.report.plots import FAMILY_COLOURS, Chart, families_chart, nats_bar, share_bar
from flows.report.scores import Score, score

_SHOWS = {
    "none": "No element to read: what the core says on its own.",
    "retrieved": "What the words of the prompt found; each place of the text weighs what it reads.",
    "raw_text": "The tokens of the same documents instead of their memories, read in the same way.",
    "right": "The own document’s memory alone, and reading nothing is no choice.",
    "wrong": "As many other documents’ memories, and reading nothing is no choice.",
    "wrong_weighed": "The same other memories, where each place may read nothing, as the system does.",
    "shuffled": "The own document’s memory with its states in random order, by force.",
}
_GAINS = {
    "document_specific": ("log loss with wrong elements, less that with the right one", "nats"),
    "weighed_share": ("document-specific share of the gain, wrong ones weighed", "share"),
    "weighed_cost": ("what wrong elements cost, weighed", "nats"),
    "of_raw_text": ("gain of retrieved elements, as a part of raw text’s", "share"),
}


@dataclass(frozen=True)
class ReadingRow:
    """One condition; losses in nats per target token, shares and weights in [0, 1]."""

    label: str
    shows: str
    nll: Score
    exact: Score
    weight: float | None
    own: float | None
    """Share of the tasks with their own document among what is read."""
    bytes_read: float | None
    latency_ms: float | None


@dataclass(frozen=True)
class ReadingFamily:
    """Conditions that answer the same question."""

    key: str
    label: str
    about: str
    rows: Sequence[ReadingRow]


@dataclass(frozen=True)
class Reading:
    """The conditions by family; `gains` are (what it is, whether nats or a share, figure)."""

    tasks: float | None
    documents: float | None
    elements: float | None
    nearest: bool
    """Wrong elements are the nearest other ones, not drawn ones."""
    families: Sequence[ReadingFamily]
    gains: Sequence[tuple[str, str, Score]]


def reading(summary: Mapping[str, Any]) -> Reading | None:
    """The evaluation of reading in a summary, None if it has none."""
    given = section(summary, "reading")
    conditions, latency = section(given, "conditions"), section(given, "latency_ms")
    by_family: dict[str, list[ReadingRow]] = {}
    for name in in_reading_order(conditions):
        found = section(conditions, name)
        if found:
            by_family.setdefault(family_of(name, found.get("family")), []).append(
                _row(name, found, number(latency.get(name)))
            )
    if not by_family:
        return None
    intervals = section(section(given, "gain"), "intervals")
    gains = [(*_GAINS[name], score(intervals[name])) for name in _GAINS if name in intervals]
    return Reading(
        number(given.get("tasks")),
        number(given.get("documents")),
        number(given.get("elements")),
        given.get("wrong") == "nearest",
        [ReadingFamily(key, *FAMILIES[key], by_family[key]) for key in FAMILIES if key in by_family],
        gains,
    )


def reading_charts(found: Reading | None) -> list[Chart | None]:
    """Loss and exact continuations under each condition, a panel for each family."""
    if found is None:
        return []
    losses, exact = (
        [(family.label, FAMILY_COLOURS[family.key], bars(family.rows)) for family in found.families]
        for bars in (_losses, _exact)
    )
    title, exactly = "Log loss without an alignment", "Exactly right without an alignment"
    return [
        families_chart("reading", title, "nats per target token, lower is better", losses, "nats"),
        families_chart("reading_exact", exactly, "% of tasks, higher is better", exact, "of tasks"),
    ]


def _losses(rows: Sequence[ReadingRow]) -> list[Any]:
    return [nats_bar(r.label, r.nll.value, r.nll.bounds) for r in rows if r.nll.value is not None]


def _exact(rows: Sequence[ReadingRow]) -> list[Any]:
    return [share_bar(r.label, r.exact.value, r.exact.bounds) for r in rows if r.exact.value is not None]


def _row(name: str, found: Mapping[str, Any], latency_ms: float | None) -> ReadingRow:
    return ReadingRow(
        label(name),
        _SHOWS.get(name, ""),
        score(found.get("nll")),
        score(found.get("greedy_exact")),
        number(found.get("mean_weight")),
        number(found.get("own_document")),
        number(found.get("bytes_read")),
        latency_ms,
    )
