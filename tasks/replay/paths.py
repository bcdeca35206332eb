"""The paths of a replay that learn: what they read, from which slow state, and how they step (LARC 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tasks.replay.params import PathName
from tasks.replay.prompts import View

Start = Literal["task", "original"]
"""The slow state after its task fit, or before it."""


@dataclass(frozen=True)
class FastPath:
    """A path whose factors follow the feedback.

    One that carries steps on from where it is; else each step starts from the slow state (LATEST). `tenth`
    makes the smaller increment; `permuted` learns permuted labels; `controlled` is our controller's.
    """

    view: View
    start: Start = "task"
    carries: bool = True
    tenth: bool = False
    permuted: bool = False
    controlled: bool = False


FAST: Mapping[PathName, FastPath] = {
    "keep": FastPath("plain"),
    "keep_memory": FastPath("memory"),
    "permuted": FastPath("memory", permuted=True),
    "original": FastPath("memory", start="original"),
    "carry_tenth": FastPath("memory", tenth=True),
    "latest_full": FastPath("memory", carries=False),
    "latest_tenth": FastPath("memory", carries=False, tenth=True),
    "controller": FastPath("memory", controlled=True),
}
RESET: Mapping[PathName, View] = {"reset": "plain", "reset_memory": "memory"}
"""Paths that always read at the slow state of the task fit."""
