"""Another text for one element: what its tasks ask for becomes something else, what they show stays."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.errors import TooLittleText
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

    Raises `TooLittleText` where an answer has no span of another document to differ from it.
    """
    said_N = np.asarray(ids_N, np.uint16)
    made_N = said_N.copy()
    for task in editable(tasks):
        there = slice(task.offset, task.offset + len(task.target))
        span_T = _other_span(said_N[there], others, generator)
        if span_T is None:
            raise TooLittleText(
                f"no other document holds {len(task.target)} tokens that differ from what {task.element} "
                f"says from token {task.offset} on; ingest more text, or name a version of the memory to "
                "put in"
            )
        made_N[there] = span_T
    return made_N


def _other_span(
    said_T: NDArray[np.uint16], others: Mapping[str, NDArray[np.integer]], generator: np.random.Generator
) -> NDArray[np.uint16] | None:
    """A span of another document with other tokens than these: a drawn one, or the next that differs.

    From the drawn place on every span of every document is looked at once, so that the search ends; None
    where no document is long enough or all of them say the same.
    """
    names = sorted(name for name, ids in others.items() if len(ids) >= len(said_T))
    if not names:
        return None
    first = int(generator.integers(len(names)))
    start = int(generator.integers(len(others[names[first]]) - len(said_T) + 1))
    for name in [*names[first:], *names[:first]]:
        donor_N: NDArray[np.uint16] = np.asarray(others[name], np.uint16)
        spans_ST = np.lib.stride_tricks.sliding_window_view(donor_N, len(said_T))
        differing_S = np.flatnonzero((spans_ST != said_T).any(1))
        if len(differing_S):
            # The first one from the drawn place on, or after the end the first of all.
            place = int(differing_S[np.searchsorted(differing_S, start) % len(differing_S)])
            return donor_N[place : place + len(said_T)]
        start = 0
    return None
