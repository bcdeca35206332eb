"""The worker: optimises document-specific residuals of cells under a frozen codec (FEM-ASM, codec and cells).

Many documents share each computation. Tiles have one fixed shape, so a document gets the same cells whether
it is alone or among others.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.codec import BlockGroups, Codec, as_stored, group_documents
from tasks.memory.cells import MemoryCells
from tasks.memory.params import MemoryParams
from tasks.memory.scoring import Scoring, scoring
from tasks.memory.seats import Seats, Start, score
from tasks.memory.tiles import Tiles

Advance = Callable[[int, int], None]
"""Called with the groups looked at so far and the groups in all."""


@dataclass(frozen=True)
class WorkedDocument:
    """A document's cells in stored form, and the adaptation steps of each of its blocks, int64 (N,)."""

    memory: MemoryCells
    steps_N: Tensor


def work_documents(
    codec: Codec, documents: Sequence[np.ndarray], params: MemoryParams, advance: Advance | None = None
) -> list[WorkedDocument]:
    """Cells for documents given as token ids, each (L,) with L > 0.

    Every block is first encoded and read once; the groups that do not pass are adapted until they do, stop
    improving for `patience` steps or reach `max_steps`.
    """
    tiles = Tiles(codec, params.tile_blocks)
    groups = group_documents(documents, codec.architecture)
    scored = scoring(tiles, params)
    cells_MGC, failing = _encode(tiles, groups, params, scored, advance)
    steps_M = _adapt(Seats(tiles, params, scored), groups, cells_MGC, failing)
    worked = []
    for number, ids in enumerate(documents):
        mine = groups.document_N == number
        count = -(-len(ids) // tiles.block_tokens)
        cells_NC = cells_MGC[mine].flatten(0, 1)[:count]
        steps_N = steps_M[mine].repeat_interleave(tiles.group)[:count]
        worked.append(WorkedDocument(MemoryCells.from_float(cells_NC, len(ids), params.dtype), steps_N))
    return worked


def _encode(
    tiles: Tiles, groups: BlockGroups, params: MemoryParams, scored: Scoring, advance: Advance | None
) -> tuple[Tensor, dict[int, Start]]:
    """Initial cells z0 (M, G, C) of all groups, and where those start that do not pass with them."""
    cells_MGC = torch.zeros(len(groups), tiles.group, tiles.cell_width)
    failing: dict[int, Start] = {}
    for start in range(0, len(groups), tiles.size):
        chosen = range(start, min(start + tiles.size, len(groups)))
        tokens_BT, mask_BT = tiles.fill(groups, chosen)
        with torch.no_grad():
            cells_BC = tiles.codec.encode(tokens_BT)
        reading, rivals_BTR = scored.survey(as_stored(cells_BC, params.dtype), tokens_BT, mask_BT)
        cells_MGC[chosen.start : chosen.stop] = cells_BC.view(tiles.size, tiles.group, -1)[
            : len(chosen)
        ].cpu()
        passed_g = reading.margin_NT.view(tiles.size, -1).amin(1) >= params.margin
        rivals_gGTR = rivals_BTR.view(tiles.size, tiles.group, tiles.block_tokens, -1).cpu()
        for seat, (index, passed) in enumerate(zip(chosen, passed_g.tolist(), strict=False)):
            if not passed:
                mine = reading.rows(slice(seat * tiles.group, (seat + 1) * tiles.group))
                failing[index] = Start(score(mine), rivals_gGTR[seat].clone())
        if advance is not None:
            advance(chosen.stop, len(groups))
    return cells_MGC, failing


def _adapt(seats: Seats, groups: BlockGroups, cells_MGC: Tensor, failing: dict[int, Start]) -> Tensor:
    """Adapt the failing groups in one tile, replacing their cells in place; returns steps per group (M,)."""
    steps_M = torch.zeros(len(groups), dtype=torch.int64)
    waiting = deque(failing)
    while seats.occupied or waiting:
        seats.admit(groups, cells_MGC, waiting, failing)
        for index, best_GC, steps in seats.advance():
            cells_MGC[index] = best_GC
            steps_M[index] = steps
    return steps_M
