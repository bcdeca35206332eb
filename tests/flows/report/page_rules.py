"""What holds for every page of its own that is made of figures: its bytes, its gaps, its hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.report import depth, lines, plots
from tests.flows.report.test_report import HOSTILE, Page

Write = Callable[[dict[str, Any], Path], Path]


def check_self_contained(text: str) -> None:
    """A page asks for nothing outside itself, runs nothing, and has one title and no name twice."""
    page = Page(text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    assert page.values("src") == []
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert len(page.named("h1")) == 1


def check_equal_bytes(write: Write, figures: dict[str, Any], folder: Path) -> None:
    """Equal figures give equal bytes, in whatever order their members stand."""

    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: backwards(value[name]) for name in reversed(value)}
        return value

    (folder / "other").mkdir()
    one = write(figures, folder)
    other = write(backwards(json.loads(json.dumps(figures))), folder / "other")
    assert one.read_bytes() == other.read_bytes()


def check_left_out(write: Write, figures: dict[str, Any], name: str, folder: Path) -> None:
    """A section that is missing, or is something else, is left out, and the page stays one.

    Charts are composed but not drawn, which would take most of the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (plots, lines, depth):
            patch.setattr(module, "render", _composed)
        for value in (None, "text", {"x": None}, {"x": {"y": [1]}}, [HOSTILE]):
            Page(write({**figures, name: value}, folder).read_text(encoding="utf-8"))
        rest = {key: value for key, value in figures.items() if key != name}
        Page(write(rest, folder).read_text(encoding="utf-8"))


class _NoAxes:
    """Takes what is drawn, and draws nothing."""

    def text(self, *_: object, **__: object) -> None: ...

    plot = bar = barh = text


def _composed(
    name: str, title: str, description: str, height: float, fill: Callable[[Any], None]
) -> plots.Chart:
    fill(_NoAxes())
    return plots.Chart(name, title, description, "<svg ></svg>")


def check_harmless(text: str) -> None:
    """No text of the figures became markup or a control character."""
    page = Page(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert page.values("onerror") == []
