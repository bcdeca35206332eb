"""A replacement as the report tells it: what had to change and did, and what edited answers became."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import count, number, section
from flows.report.conditions import in_reading_order, label
from flows.report.examples import MOST_EXAMPLES, agreement, cut
from flows.report.plots import EXTERNAL, PLAIN, STANDALONE, Bar, Chart, families_chart, nats_bar


@dataclass(frozen=True)
class Changed:
    """Results of one condition that had to change and that did, and mean losses in nats per target token."""

    label: str
    expected: float | None
    changed: float | None
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Followed:
    """Tasks with an edited answer under one condition, by what was written."""

    label: str
    tasks: float | None
    old_before: float | None
    new_after: float | None
    old_after: float | None


@dataclass(frozen=True)
class Written:
    """What one condition wrote before and after, in pieces marked by agreement with what stood there."""

    label: str
    before: Sequence[tuple[str, bool]]
    after: Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class Edited:
    """A task whose answer was edited: the text of the old version, and of the new one where it is known."""

    kind: str
    cue: str
    old: str
    new: str | None
    written: Sequence[Written]


@dataclass(frozen=True)
class Replacement:
    """What was replaced and what came of it; figures that the summary lacks are None."""

    element: str
    versions: tuple[str, str] | None
    figures: Mapping[str, float | None]
    exact: bool | None
    """Exactly the results changed that had to."""
    conditions: Sequence[Changed]
    follows: Sequence[Followed]
    edited: Sequence[Edited]


def replacement(summary: Mapping[str, Any]) -> Replacement | None:
    """The replacement in a summary, None if it has none."""
    given = section(summary, "replacement")
    element, by_condition = given.get("replaced"), section(given, "by_condition")
    if not isinstance(element, str) or not by_condition:
        return None
    versions, exact = section(given, "versions"), given.get("exact")
    old, new = versions.get("before"), versions.get("after")
    follows, answers = section(given, "follows"), given.get("answers")
    return Replacement(
        element,
        (old[:12], new[:12]) if isinstance(old, str) and isinstance(new, str) else None,
        {
            **{
                name: number(given.get(name))
                for name in ("tasks", "results", "reading_the_element", "expected_to_change", "changed")
            },
            "blocks": number(section(given, "blocks").get("all")),
            "different_blocks": number(section(given, "blocks").get("different")),
            "elsewhere": number(section(given, "elsewhere").get("results")),
            "elsewhere_changed": number(section(given, "elsewhere").get("changed")),
        },
        exact if isinstance(exact, bool) else None,
        [_changed(name, section(by_condition, name)) for name in in_reading_order(by_condition)],
        [_followed(name, section(follows, name)) for name in in_reading_order(follows)],
        [
            _edited(one)
            for one in (answers if isinstance(answers, list) else [])[:MOST_EXAMPLES]
            if isinstance(one, Mapping)
        ],
    )


def replacement_charts(found: Replacement | None) -> list[Chart | None]:
    """Results that had to change and that did, and losses before and after, by condition."""
    if found is None:
        return []
    due = [Bar(c.label, c.expected, count(c.expected)) for c in found.conditions if c.expected is not None]
    did = [Bar(c.label, c.changed, count(c.changed)) for c in found.conditions if c.changed is not None]
    before = [nats_bar(c.label, c.before, None) for c in found.conditions if c.before is not None]
    after = [nats_bar(c.label, c.after, None) for c in found.conditions if c.after is not None]
    return [
        families_chart(
            "replacement",
            "Results that change with the replaced memory",
            "results",
            [("had to change", PLAIN, due), ("changed", EXTERNAL, did)],
            "results",
        ),
        families_chart(
            "replacement_nll",
            "Log loss before and after",
            "nats per target token of the old text",
            [("before", STANDALONE, before), ("after", EXTERNAL, after)],
            "nats",
        ),
    ]


def _changed(name: str, found: Mapping[str, Any]) -> Changed:
    losses = section(found, "nll")
    figures = (found.get("expected"), found.get("changed"), losses.get("before"), losses.get("after"))
    return Changed(label(name), *map(number, figures))


def _followed(name: str, found: Mapping[str, Any]) -> Followed:
    members = ("tasks", "old_before", "new_after", "old_after")
    return Followed(label(name), *(number(found.get(member)) for member in members))


def _edited(given: Mapping[str, Any]) -> Edited:
    written = section(given, "written")
    old, new = _text(given.get("old")), given.get("new")
    # Without the new text there is nothing to agree with but the old one, from which answers then part.
    said = new if isinstance(new, str) else old
    return Edited(
        _text(given.get("kind")),
        cut(_text(given.get("cue")), keep_end=True),
        cut(old),
        cut(new) if isinstance(new, str) else None,
        [
            Written(
                label(name),
                agreement(cut(_text(section(written, name).get("before"))), cut(old)),
                agreement(cut(_text(section(written, name).get("after"))), cut(said)),
            )
            for name in in_reading_order(written)
        ],
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
