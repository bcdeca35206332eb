"""Figures of a section, their ratios with what is required of them, and both as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass
class Figure:
    """One thing that was measured several times: `values` in `unit`, `peaks` of memory in MiB."""

    name: str
    unit: str
    values: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.values)

    def add(self, value: float, rss: int | None = None) -> None:
        """Take in one more run."""
        self.values.append(value)
        if rss is not None:
            self.peaks.append(rss)


@dataclass(frozen=True)
class Requirement:
    """A figure that is held against a threshold; without one it is only shown."""

    name: str
    value: float
    unit: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def verdict(self) -> str:
        if self.least is None and self.most is None:
            return "shown only"
        fits = (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )
        return "pass" if fits else "FAIL"

    @property
    def required(self) -> str:
        if self.least is not None:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.most is not None else ""


@dataclass
class Section:
    """What one section found."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, name: str, unit: str) -> Figure:
        """Return the figure of that name, new if there is none."""
        for known in self.figures:
            if known.name == name:
                return known
        self.figures.append(Figure(name, unit))
        return self.figures[-1]

    def require(
        self,
        name: str,
        value: float,
        unit: str = "",
        *,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        """Hold a value against a threshold."""
        self.requirements.append(Requirement(name, value, unit, least, most))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "title": self.title,
            "figures": [{**asdict(figure), "median": figure.median} for figure in self.figures],
            "requirements": [
                {**asdict(one), "required": one.required, "verdict": one.verdict} for one in self.requirements
            ],
            "notes": self.notes,
        }


def markdown(section: dict[str, Any]) -> list[str]:
    """Return what `Section.to_dict` gave as lines of Markdown."""
    figures = [
        (
            figure["name"],
            f"{number(figure['median'])} {figure['unit']}",
            " ".join(number(value) for value in figure["values"]),
            f"{max(figure['peaks'])} MiB" if figure["peaks"] else "",
        )
        for figure in section["figures"]
    ]
    held = [
        (one["name"], f"{number(one['value'])} {one['unit']}".strip(), one["required"], one["verdict"])
        for one in section["requirements"]
    ]
    return [
        f"### {section['title']}",
        "",
        *_table(("measured", "median", "each run", "peak memory"), figures),
        *(["", *_table(("ratio or bound", "value", "required", "verdict"), held)] if held else []),
        *(f"\n- {note}" if place == 0 else f"- {note}" for place, note in enumerate(section["notes"])),
        "",
    ]


def number(value: float) -> str:
    """A number with three or four digits that count."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
