"""An evaluation of addressing as the report tells it: recall by kind, changed tokens and searcher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import number, section
from flows.report.plots import EXTERNAL, PLAIN, Chart, families_chart, share_bar
from flows.report.scores import Score, score

_SEARCHERS = {"charts": "indexes and reranker", "bm25": "BM25", "dense": "dense keys alone"}
_KINDS = {"all": "all kinds", "determined": "cues that no other document holds with another answer"}
_OURS = "charts"
_EVERY = "all"


@dataclass(frozen=True)
class Recall:
    """Recall of one searcher on one kind of cue with one share of changed tokens."""

    kind: str
    changed: float
    searcher: str
    candidates: Score
    """The answer is among the candidates."""
    first: Score
    """The first candidate holds the same cue and answer."""
    first_cue: Score
    """The first candidate holds the same cue, whatever answer follows."""
    first_named: Score
    """The first candidate is the very document."""

    @property
    def label(self) -> str:
        """The share of changed tokens in words."""
        return _changed(self.changed)


@dataclass(frozen=True)
class Addressing:
    """Recalls in the order of the evaluation's table; `searchers` and `kinds` are (key, printed name)."""

    tasks: float | None
    documents: float | None
    ambiguous: float | None
    searchers: Sequence[tuple[str, str]]
    kinds: Sequence[tuple[str, str]]
    recalls: Sequence[Recall]

    def rows(self, kind: str) -> list[tuple[str, list[Recall | None]]]:
        """Recalls of a kind: for each share of changed tokens one of every searcher, None where it lacks."""
        found = {(r.changed, r.searcher): r for r in self.recalls if r.kind == kind}
        shares = sorted({changed for changed, _ in found})
        return [
            (_changed(changed), [found.get((changed, searcher)) for searcher, _ in self.searchers])
            for changed in shares
        ]

    @property
    def own(self) -> list[Recall]:
        """The system's own recalls on all kinds of cues."""
        return [r for r in self.recalls if (r.kind, r.searcher) == (_EVERY, _OURS)]


def addressing(summary: Mapping[str, Any]) -> Addressing | None:
    """The evaluation of addressing in a summary, None if it has none."""
    given = section(summary, "addressing")
    table = given.get("table")
    rows = [row for row in table if isinstance(row, Mapping)] if isinstance(table, list) else []
    recalls = [recall for row in rows if (recall := _recall(row)) is not None]
    if not recalls:
        return None
    searchers = sorted({r.searcher for r in recalls}, key=_place(_SEARCHERS))
    kinds = sorted(dict.fromkeys(r.kind for r in recalls), key=lambda kind: kind not in _KINDS)
    return Addressing(
        number(given.get("tasks")),
        number(given.get("documents")),
        number(given.get("ambiguous")),
        [(name, _SEARCHERS.get(name, name)) for name in searchers],
        [(kind, _KINDS.get(kind, kind.replace("_", " "))) for kind in kinds],
        recalls,
    )


def recall_chart(found: Addressing | None) -> Chart | None:
    """Recall at one against the share of changed tokens, a panel for each searcher."""
    if found is None:
        return None
    panels = []
    for key, name in found.searchers:
        course = sorted(
            (r for r in found.recalls if (r.kind, r.searcher) == (_EVERY, key)), key=lambda r: r.changed
        )
        bars = [
            share_bar(f"{r.label} changed", r.first.value, r.first.bounds)
            for r in course
            if r.first.value is not None
        ]
        panels.append((name, EXTERNAL if key == _OURS else PLAIN, bars))
    return families_chart(
        "recall",
        "The right passage first, as tokens of the cue change",
        "% of cues, higher is better",
        panels,
        "of cues",
    )


def _changed(share: float) -> str:
    return f"{100 * share:g}\N{NO-BREAK SPACE}%"


def _recall(row: Mapping[str, Any]) -> Recall | None:
    kind, searcher, changed = row.get("kind"), row.get("searcher"), number(row.get("corruption"))
    if not isinstance(kind, str) or not isinstance(searcher, str) or changed is None:
        return None
    return Recall(
        kind,
        changed,
        searcher,
        score(row.get("candidate_recall")),
        score(row.get("recall_at_1")),
        score(row.get("recall_at_1_cue")),
        score(row.get("recall_at_1_named")),
    )


def _place(known: Mapping[str, str]) -> Any:
    """A sort key: known names in their order, then the others by name."""
    order = list(known)
    return lambda name: (order.index(name) if name in known else len(order), name)
