"""Which of a snapshot's memories a core is trained on."""

from collections.abc import Iterable

from store import Row
from tasks.corpus import Split, element_split


def select_elements(memories: Iterable[Row], most: int) -> dict[Split, list[Row]]:
    """The train- and validation-split ones of a snapshot's memories by name, at most `most` of each.

    Where there are more, the first by version are taken: a sample that no name order biases.
    """
    chosen: dict[Split, list[Row]] = {"train": [], "validation": []}
    for row in memories:
        split = element_split(row.name)
        if split in chosen:
            chosen[split].append(row)
    return {
        split: sorted(sorted(rows, key=lambda row: row.version)[:most], key=lambda row: row.name)
        for split, rows in chosen.items()
    }
