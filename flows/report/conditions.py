"""The conditions of an evaluation as the report tells them: by family, each with what it shows."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import number, pair, section

# Known conditions in reading order: printed name, family, and what the condition shows.
_CONDITIONS = {
    "none": ("none", "standalone", "No element attached: what the core says on its own."),
    "retrieved": (
        "retrieved",
        "external",
        "The memory that the indexes found from the prompt, weighed by how well it agrees with it: "
        "the system as it is used.",
    ),
    "raw_text": (
        "raw text",
        "external",
        "The found document’s own tokens shown to the same core: the comparator that has the text itself.",
    ),
    "right": (
        "right",
        "oracle",
        "The document’s own memory, placed by its known coordinates: the most that a memory can give.",
    ),
    "wrong": (
        "wrong, forced",
        "oracle",
        "Another document’s memory at full weight: the harm when nothing checks the evidence.",
    ),
    "wrong_weighed": (
        "wrong, weighed",
        "oracle",
        "The same wrong memory with the weight that the system gives it: close to none if it is turned away.",
    ),
    "shuffled": (
        "shuffled",
        "oracle",
        "The right memory with its states in random order: the distance to right is what order is worth.",
    ),
}
FAMILIES = {
    "standalone": ("Standalone", "the core alone, no memory"),
    "external": ("External memory", "evidence that the system found itself"),
    "oracle": (
        "Oracle diagnostic",
        "evidence chosen with knowledge of the answer; not a result of the system",
    ),
}


@dataclass(frozen=True)
class ConditionRow:
    """One condition's figures; `nll` and its bounds in nats per target token, shares in [0, 1]."""

    name: str
    label: str
    family: str
    shows: str
    nll: float | None
    bounds: tuple[float, float] | None
    token_accuracy: float | None
    greedy_exact: float | None
    bytes_read: float | None
    latency_ms: float | None


@dataclass(frozen=True)
class Family:
    """Conditions that answer the same question; families are never mixed."""

    key: str
    label: str
    about: str
    conditions: Sequence[ConditionRow]


def conditions(summary: Mapping[str, Any]) -> list[ConditionRow]:
    """All conditions that have figures, the known ones first in reading order."""
    details = section(summary, "conditions")
    losses, exact = section(summary, "nll"), section(summary, "greedy_exact")
    rows = []
    for name in in_reading_order({*details, *losses, *exact}):
        detail = section(details, name)
        printed, family, shows = _CONDITIONS.get(name, (name, "oracle", ""))
        rows.append(
            ConditionRow(
                name=name,
                label=printed,
                family=_family_key(detail.get("family"), family),
                shows=shows,
                nll=_first_number(detail.get("nll"), losses.get(name)),
                bounds=pair(detail.get("nll_ci95")),
                token_accuracy=number(detail.get("token_accuracy")),
                greedy_exact=_first_number(detail.get("greedy_exact"), exact.get(name)),
                bytes_read=number(detail.get("bytes_read")),
                latency_ms=number(detail.get("latency_ms")),
            )
        )
    return rows


def families(rows: Sequence[ConditionRow]) -> list[Family]:
    """The rows by family; families without a row are left out."""
    grouped = ((key, [row for row in rows if row.family == key]) for key in FAMILIES)
    return [Family(key, *FAMILIES[key], group) for key, group in grouped if group]


def in_reading_order(names: Collection[str]) -> list[str]:
    """Names of conditions, the known ones first in the order in which they explain each other."""
    return [name for name in _CONDITIONS if name in names] + sorted(set(names) - set(_CONDITIONS))


def label(name: str) -> str:
    """A condition's printed name."""
    return _CONDITIONS[name][0] if name in _CONDITIONS else name


def family_of(name: str, given: object) -> str:
    """Key of the family that a condition belongs to, by what its record says or else by what is known."""
    return _family_key(given, _CONDITIONS[name][1] if name in _CONDITIONS else "oracle")


def _family_key(given: object, expected: str) -> str:
    """A family by the first word of its name, whichever way that is spelt."""
    word = re.split(r"\W", given)[0].lower() if isinstance(given, str) else expected
    return word if word in FAMILIES else expected


def _first_number(*values: object) -> float | None:
    return next((found for found in map(number, values) if found is not None), None)
