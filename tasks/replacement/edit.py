"""Another text for one element: what its tasks ask for becomes something else, what they show stays."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation import AttachmentTask


def most_asked(tasks: Sequence[AttachmentTask]) -> str:
    """The element of the most tasks whose answers can be edited; of equal ones the first by name."""
    by_element: dict[str, list[AttachmentTask]] = {}
    for task in tasks:
        by_element.setdefault(task.element, []).append(task)
    counts = {name: len(editable(of_it)) for name, of_it in by_element.items()}
    return min(counts, key=lambda name: (-counts[name], name))


def editable(tasks: Sequence[AttachmentTask]) -> list[AttachmentTask]:
    """Those of an element's tasks whose answers no cue of another task shows."""
    shown = {p for task in tasks for p in range(task.offset - len(task.cue), task.offset)}
    return [task for task in tasks if shown.isdisjoint(range(task.offset, task.offset + len(task.target)))]


def edit(
    ids_N: NDArray[np.integer],
    tasks: Sequence[AttachmentTask],
    others: Mapping[str, NDArray[np.integer]],
    generator: np.random.Generator,
) -> NDArray[np.uint16]:
    """A document (uint16) with other tokens where the answers of its editable tasks stand.

    Args:
        ids_N: the document's token ids.
        others: documents that the other tokens are taken from, a span of the same length for each answer.

    Cues keep their tokens, so that the same tasks find the same place in the new version.
    """
    made_N = np.asarray(ids_N, np.uint16).copy()
    names = sorted(name for name, ids in others.items() if len(ids) >= max(len(t.target) for t in tasks))
    for task in editable(tasks):
        there = slice(task.offset, task.offset + len(task.target))
        while np.array_equal(made_N[there], ids_N[there]):
            donor = others[names[int(generator.integers(len(names)))]]
            start = int(generator.integers(len(donor) - len(task.target) + 1))
            made_N[there] = donor[start : start + len(task.target)]
    return made_N
