"""Rows of a long evaluation that is not published: what an interrupted one had, the next one goes on from.

An evaluation has parts (a condition, a stage), and each part makes its rows in a fixed order, some items at a
time. What decides a row is in the recipe, the name of its part and its place, so that with rows taken up
again an evaluation ends as an undisturbed one does, bit for bit.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from tasks.checkpoint import CHECKPOINT_S, Checkpoints, discard_files, load_checkpoint, save_checkpoint
from tasks.errors import BadPayload
from tasks.progress import Progress, silent
from tasks.tables import encode_records, load_records

_LOG = logging.getLogger(__name__)
_ROWS = "rows"

R = TypeVar("R")


@dataclass(frozen=True)
class Unfinished:
    """Where an evaluation keeps what it has; without a folder nothing is kept.

    Args:
        folder: the work folder.
        recipe: says all that decides a row, such as the fingerprint of the evaluation.
        seconds: how often a part keeps its rows, besides when it is done.
    """

    folder: Path | None = None
    recipe: str = ""
    seconds: float = CHECKPOINT_S

    def part(self, name: str) -> Checkpoints | None:
        """Where a part keeps its state, None where nothing is kept."""
        if self.folder is None:
            return None
        return Checkpoints(self.folder, f"{_digest(self.recipe)}.{_digest(name)[:16]}", self.seconds)

    def rows(
        self,
        name: str,
        kind: type[R],
        items: int,
        make: Callable[[range], Sequence[R]],
        *,
        each: int = 1,
        per_item: int = 1,
        progress: Progress = silent,
    ) -> list[R]:
        """The rows of a part, flat dataclasses; `make` gives those of up to `each` items, in order.

        Items begin at 0 and give `per_item` rows each. Those that were kept are not made again. `progress`
        counts items, kept ones too.
        """
        checkpoints = self.part(name)
        rows = _kept(checkpoints, kind, items, each=each, per_item=per_item)
        before, kept_at = len(rows) // per_item, time.monotonic()
        if before:
            progress(before, items)
        for first in range(before, items, each):
            chosen = range(first, min(first + each, items))
            rows += make(chosen)
            assert len(rows) == chosen.stop * per_item, "every item has its rows"
            over = time.monotonic() - kept_at
            if checkpoints is not None and (chosen.stop == items or over >= checkpoints.seconds):
                _keep(checkpoints, kind, rows)
                kept_at = time.monotonic()
            progress(chosen.stop, items)
        return rows

    def remove(self) -> None:
        """Remove what any part kept, once the evaluation is published: now, or before a kill."""
        if self.folder is not None:
            discard_files(self.folder, f"{_digest(self.recipe)}.*")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _keep(checkpoints: Checkpoints, kind: type[R], rows: Sequence[R]) -> None:
    table = torch.frombuffer(bytearray(encode_records(kind, rows)), dtype=torch.uint8)
    save_checkpoint(checkpoints.folder, checkpoints.fingerprint, {_ROWS: table}, {})


def _kept(checkpoints: Checkpoints | None, kind: type[R], items: int, *, each: int, per_item: int) -> list[R]:
    """The rows that were kept, where they end as a turn of `each` items does; else none."""
    found = None if checkpoints is None else load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
    if found is None:
        return []
    try:
        table = found[0][_ROWS]
        if table.dtype != torch.uint8 or table.dim() != 1:
            raise ValueError("no bytes")
        rows = load_records(table.numpy().tobytes(), kind, what="a table of kept rows")
    except (BadPayload, LookupError, ValueError) as error:
        _LOG.warning("kept rows cannot be used (%s); this part starts over", error)
        return []
    done, over = divmod(len(rows), per_item)
    if over or done > items or (done < items and done % each):
        _LOG.warning("kept rows are not those of so many items; this part starts over")
        return []
    return rows
