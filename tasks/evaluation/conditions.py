"""Evidence conditions: what is attached to a task, from where and with which weight (FEM-ASM, conditions).

The core's weights never change between conditions; only the available evidence does. Every condition
belongs to one of three families whose results are never mixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.tasks import AttachmentTask


class Family(StrEnum):
    """Which question a result answers."""

    STANDALONE = "standalone"
    EXTERNAL = "external-memory"
    ORACLE = "oracle-coordinate"
    ORACLE_ELEMENT = "oracle-element"
    """The element is chosen by an oracle, and no place in it is given."""


class Condition(StrEnum):
    """The evidence shown with a task."""

    NONE = "none"
    RIGHT = "right"
    RETRIEVED = "retrieved"
    WRONG = "wrong"
    WRONG_WEIGHED = "wrong_weighed"
    SHUFFLED = "shuffled"
    RAW_TEXT = "raw_text"

    @property
    def family(self) -> Family:
        """Standalone without evidence; external memory where the system found it; an oracle's choice
        otherwise.
        """
        if self is Condition.NONE:
            return Family.STANDALONE
        if self in (Condition.RETRIEVED, Condition.RAW_TEXT):
            return Family.EXTERNAL
        return Family.ORACLE

    @property
    def weighed(self) -> bool:
        """Whether the system's own weight is used; weight 1 is forced otherwise."""
        return self in (Condition.RETRIEVED, Condition.RAW_TEXT, Condition.WRONG_WEIGHED)


class Found(Protocol):
    """What evaluation reads of a retrieval candidate; `offset` is the element's token right after the cue."""

    @property
    def name(self) -> str: ...

    @property
    def offset(self) -> int: ...


class Retriever(Protocol):
    """Finds elements for many cues of token ids at once, best first."""

    def search_many(self, cues: Sequence[NDArray[np.int64]], k: int) -> Sequence[Sequence[Found]]: ...


@dataclass(frozen=True)
class Placement:
    """An element laid along a task's sequence: its token `start` stands at the sequence's position 0."""

    element: str
    start: int


Plan = dict[Condition, list[Placement | None]]


def named_elements(plan: Plan) -> list[str]:
    """Names of the elements that a plan shows to any task, sorted."""
    return sorted({p.element for placements in plan.values() for p in placements if p is not None})


def plan_evidence(
    tasks: Sequence[AttachmentTask],
    retriever: Retriever,
    lengths: dict[str, int],
    *,
    seed: int,
) -> Plan:
    """Choose every condition's evidence for every task; None where a condition shows nothing.

    Args:
        lengths: tokens of every element that may serve as wrong evidence, by name.

    The wrong element is another document, drawn uniformly among those long enough for an equally long span,
    and laid at the task's own coordinates where they exist in it.
    """
    rng = np.random.default_rng([seed, 1])
    right: list[Placement | None] = [Placement(task.element, task.offset - len(task.cue)) for task in tasks]
    found: list[Placement | None] = [
        Placement(candidates[0].name, candidates[0].offset - len(task.cue)) if candidates else None
        for task, candidates in zip(tasks, retriever.search_many([t.cue for t in tasks], 1), strict=True)
    ]
    names = sorted(lengths)
    wrong = [_other(task, names, lengths, rng) for task in tasks]
    return {
        Condition.NONE: [None] * len(tasks),
        Condition.RIGHT: right,
        Condition.RETRIEVED: found,
        Condition.WRONG: wrong,
        Condition.WRONG_WEIGHED: wrong,
        Condition.SHUFFLED: right,
        Condition.RAW_TEXT: found,
    }


def _other(
    task: AttachmentTask, names: list[str], lengths: dict[str, int], rng: np.random.Generator
) -> Placement | None:
    window = len(task.cue) + len(task.target)
    fitting = [name for name in names if name != task.element and lengths[name] >= window]
    if not fitting:
        return None
    name = fitting[int(rng.integers(len(fitting)))]
    return Placement(name, min(task.offset - len(task.cue), lengths[name] - window))
