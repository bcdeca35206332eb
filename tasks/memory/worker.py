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

from tasks.codec import (
    BlockGroups,
    CellAdam,
    Codec,
    Reading,
    as_stored,
    group_documents,
    read_cells,
    read_with_gradient,
)
from tasks.errors import TaskError
from tasks.memory.cells import MemoryCells
from tasks.memory.params import MemoryParams

_SMALLEST_GAIN = 0.01
"""Share by which the loss has to fall to count as a better reading."""

Advance = Callable[[int, int], None]
"""Called with the groups looked at so far and the groups in all."""


@dataclass(frozen=True)
class WorkedDocument:
    """A document's cells in stored form, and the adaptation steps of each of its blocks, int64 (N,)."""

    memory: MemoryCells
    steps_N: Tensor


class Tiles:
    """The one shape in which a codec is run by workers: `size` groups of G blocks."""

    def __init__(self, codec: Codec, tile_blocks: int) -> None:
        architecture = codec.architecture
        if tile_blocks % architecture.group_blocks:
            raise TaskError(
                f"tile_blocks {tile_blocks} is not a multiple of the codec's group of "
                f"{architecture.group_blocks} blocks; set memory.tile_blocks to one"
            )
        self.codec = codec
        self.group = architecture.group_blocks
        self.size = tile_blocks // self.group
        self.block_tokens = architecture.block_tokens
        self.cell_width = architecture.cell_width
        self.device = codec.head.weight.device

    def fill(self, groups: BlockGroups, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Tokens int64 and mask bool, (size * G, T): the chosen groups, then empty ones."""
        shape = (self.size * self.group, self.block_tokens)
        tokens_BT = torch.zeros(shape, dtype=torch.int64)
        mask_BT = torch.zeros(shape, dtype=torch.bool)
        rows = len(chosen) * self.group
        tokens_BT[:rows], mask_BT[:rows] = groups.select(torch.tensor(chosen, dtype=torch.int64))
        return tokens_BT.to(self.device), mask_BT.to(self.device)

    def read(self, stored_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> Reading:
        """Read a tile of cells that already went through their stored form."""
        return read_cells(
            self.codec, stored_BC, self.codec.parents(stored_BC, mask_BT.any(1)), tokens_BT, mask_BT
        )

    def read_all(self, groups: BlockGroups, cells_MGC: Tensor) -> Reading:
        """Read the stored cells of M groups, (M, G, C); the reading's rows are their M * G blocks."""
        readings = []
        for start in range(0, len(groups), self.size):
            chosen = range(start, min(start + self.size, len(groups)))
            tokens_BT, mask_BT = self.fill(groups, chosen)
            stored_BC = torch.zeros(self.size * self.group, self.cell_width, device=self.device)
            rows = len(chosen) * self.group
            stored_BC[:rows] = cells_MGC[chosen.start : chosen.stop].flatten(0, 1).to(self.device)
            part = self.read(stored_BC, tokens_BT, mask_BT)
            readings.append(Reading(*(t[:rows].cpu() for t in (part.right_NT, part.margin_NT, part.loss_NT))))
        return Reading(
            right_NT=torch.cat([r.right_NT for r in readings]),
            margin_NT=torch.cat([r.margin_NT for r in readings]),
            loss_NT=torch.cat([r.loss_NT for r in readings]),
        )


def work_documents(
    codec: Codec, documents: Sequence[np.ndarray], params: MemoryParams, advance: Advance | None = None
) -> list[WorkedDocument]:
    """Cells for documents given as token ids, each (L,) with L > 0.

    Every block is first encoded and read once; the groups that do not pass are adapted until they do, stop
    improving for `patience` steps or reach `max_steps`.
    """
    tiles = Tiles(codec, params.tile_blocks)
    groups = group_documents(documents, codec.architecture)
    cells_MGC, failing = _encode(tiles, groups, params, advance)
    steps_M = _adapt(tiles, groups, cells_MGC, failing, params)
    worked = []
    for number, ids in enumerate(documents):
        mine = groups.document_N == number
        count = -(-len(ids) // tiles.block_tokens)
        cells_NC = cells_MGC[mine].flatten(0, 1)[:count]
        steps_N = steps_M[mine].repeat_interleave(tiles.group)[:count]
        worked.append(WorkedDocument(MemoryCells.from_float(cells_NC, len(ids), params.dtype), steps_N))
    return worked


def _encode(
    tiles: Tiles, groups: BlockGroups, params: MemoryParams, advance: Advance | None
) -> tuple[Tensor, list[int]]:
    """Initial cells z0 (M, G, C) of all groups, and the groups that do not pass with them."""
    cells_MGC = torch.zeros(len(groups), tiles.group, tiles.cell_width)
    failing: list[int] = []
    for start in range(0, len(groups), tiles.size):
        chosen = range(start, min(start + tiles.size, len(groups)))
        tokens_BT, mask_BT = tiles.fill(groups, chosen)
        with torch.no_grad():
            cells_BC = tiles.codec.encode(tokens_BT)
        reading = tiles.read(as_stored(cells_BC, params.dtype), tokens_BT, mask_BT)
        cells_MGC[chosen.start : chosen.stop] = cells_BC.view(tiles.size, tiles.group, -1)[
            : len(chosen)
        ].cpu()
        passed_g = reading.margin_NT.view(tiles.size, -1).amin(1) >= params.margin
        failing += [index for index, passed in zip(chosen, passed_g.tolist(), strict=False) if not passed]
        if advance is not None:
            advance(chosen.stop, len(groups))
    return cells_MGC, failing


def _adapt(
    tiles: Tiles, groups: BlockGroups, cells_MGC: Tensor, failing: Sequence[int], params: MemoryParams
) -> Tensor:
    """Adapt the failing groups in one tile, replacing their cells in place; returns steps per group (M,)."""
    steps_M = torch.zeros(len(groups), dtype=torch.int64)
    waiting = deque(failing)
    seats = _Seats(tiles, params)
    while seats.occupied or waiting:
        seats.admit(groups, cells_MGC, waiting)
        for index, best_GC, steps in seats.advance():
            cells_MGC[index] = best_GC
            steps_M[index] = steps
    return steps_M


class _Seats:
    """One tile under adaptation: each seat holds a group until it leaves and another takes its place."""

    def __init__(self, tiles: Tiles, params: MemoryParams) -> None:
        self._tiles = tiles
        self._params = params
        self._tokens_BT, self._mask_BT = tiles.fill(_no_groups(tiles), [])
        self._cells_BC = torch.zeros(len(self._tokens_BT), tiles.cell_width, device=tiles.device)
        self._best_BC = self._cells_BC.clone()
        self._adam = CellAdam(self._cells_BC, params.rate)
        self._group = [-1] * tiles.size
        self._steps = [0] * tiles.size
        self._idle = [0] * tiles.size
        self._best = [(0, 0.0)] * tiles.size

    @property
    def occupied(self) -> bool:
        return any(index >= 0 for index in self._group)

    def admit(self, groups: BlockGroups, cells_MGC: Tensor, waiting: deque[int]) -> None:
        """Seat waiting groups wherever there is room."""
        for seat, index in enumerate(self._group):
            if index < 0 and waiting:
                new = waiting.popleft()
                rows = self._rows(seat)
                tokens_GT, mask_GT = groups.select(torch.tensor([new]))
                self._tokens_BT[rows] = tokens_GT.to(self._tiles.device)
                self._mask_BT[rows] = mask_GT.to(self._tiles.device)
                self._cells_BC[rows] = cells_MGC[new].to(self._tiles.device)
                self._best_BC[rows] = self._cells_BC[rows]
                self._adam.reset(torch.arange(rows.start, rows.stop))
                self._group[seat], self._steps[seat], self._idle[seat] = new, 0, 0
                self._best[seat] = (self._tokens_BT[rows].numel() + 1, 0.0)

    def advance(self) -> list[tuple[int, Tensor, int]]:
        """Read the tile and step those that stay; returns (group, best cells (G, C), steps) of the others."""
        params, size = self._params, self._tiles.size
        reading, gradient_BC = read_with_gradient(
            self._tiles.codec, self._cells_BC, self._tokens_BT, self._mask_BT, params.dtype
        )
        margins = reading.margin_NT.view(size, -1).amin(1).tolist()
        wrongs = (~reading.right_NT).view(size, -1).sum(1).tolist()
        losses = reading.loss_NT.view(size, -1).sum(1).tolist()
        leavers = []
        for seat, index in enumerate(self._group):
            if index < 0:
                continue
            rows = self._rows(seat)
            passed = margins[seat] >= params.margin
            best_wrong, best_loss = self._best[seat]
            fewer = wrongs[seat] < best_wrong
            clearer = wrongs[seat] == best_wrong and losses[seat] < best_loss * (1 - _SMALLEST_GAIN)
            if passed or fewer or clearer:
                self._best[seat] = (wrongs[seat], losses[seat])
                self._best_BC[rows] = self._cells_BC[rows]
                self._idle[seat] = 0
            else:
                self._idle[seat] += 1
            if passed or self._idle[seat] >= params.patience or self._steps[seat] >= params.max_steps:
                leavers.append((index, self._best_BC[rows].cpu(), self._steps[seat]))
                self._group[seat] = -1
                self._mask_BT[rows] = False
            else:
                self._steps[seat] += 1
        if self.occupied:
            self._cells_BC = self._adam.step(self._cells_BC, gradient_BC)
        return leavers

    def _rows(self, seat: int) -> slice:
        return slice(seat * self._tiles.group, (seat + 1) * self._tiles.group)


def _no_groups(tiles: Tiles) -> BlockGroups:
    return group_documents([], tiles.codec.architecture)
