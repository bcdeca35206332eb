"""Seats: one tile under adaptation, in which blocks of many documents and lengths stand side by side."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.codec import BlockGroups, CellAdam, Reading
from tasks.memory.params import MemoryParams
from tasks.memory.scoring import Scoring
from tasks.memory.tiles import Tiles, no_groups

_SMALLEST_GAIN = 0.01
"""Share by which the loss has to fall to count as a better reading."""


@dataclass(frozen=True)
class Score:
    """How well a group reads: wrong tokens, then the sum of losses in nats."""

    wrong: int
    loss: float

    def improves(self, other: "Score") -> bool:
        clearer = self.loss < other.loss * (1 - _SMALLEST_GAIN)
        return self.wrong < other.wrong or (self.wrong == other.wrong and clearer)


@dataclass(frozen=True)
class Start:
    """A group whose first cells (G, C) do not pass: their score and hard negatives (G, T, R)."""

    score: Score
    rivals_GTR: Tensor


def score(reading: Reading) -> Score:
    """The score of all rows of a reading together."""
    return Score(int((~reading.right_NT).sum()), float(reading.loss_NT.sum()))


class Seats:
    """One tile under adaptation: each seat holds a group until it leaves and another takes its place."""

    def __init__(self, tiles: Tiles, params: MemoryParams, scoring: Scoring) -> None:
        self._tiles = tiles
        self._params = params
        self._scoring = scoring
        self._tokens_BT, self._mask_BT = tiles.fill(no_groups(tiles), [])
        self._cells_BC = torch.zeros(len(self._tokens_BT), tiles.cell_width, device=tiles.device)
        self._best_BC = self._cells_BC.clone()
        self._adam = CellAdam(self._cells_BC, params.rate)
        self._group = [-1] * tiles.size
        self._steps = [0] * tiles.size
        self._idle = [0] * tiles.size
        self._reached = [Score(0, 0.0)] * tiles.size
        """The best score in what steps are scored against."""
        self._best = [Score(0, 0.0)] * tiles.size
        """The score of the best cells with the full softmax."""

    @property
    def occupied(self) -> bool:
        return any(index >= 0 for index in self._group)

    def admit(
        self, groups: BlockGroups, cells_MGC: Tensor, waiting: deque[int], starts: Mapping[int, Start]
    ) -> None:
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
                self._scoring.admit(rows, tokens_GT, mask_GT, starts[new].rivals_GTR)
                self._group[seat], self._steps[seat] = new, 0
                self._forget(seat)
                # Where every step is exact, the first one says what the first cells are worth.
                self._best[seat] = self._reached[seat] if self._scoring.exact else starts[new].score

    def advance(self) -> list[tuple[int, Tensor, int]]:
        """Read the tile and step those that stay; returns (group, best cells (G, C), steps) of the others."""
        params, size = self._params, self._tiles.size
        reading, gradient_BC = self._scoring.read(self._cells_BC, self._tokens_BT, self._mask_BT)
        margins = reading.margin_NT.view(size, -1).amin(1).tolist()
        wrongs = (~reading.right_NT).view(size, -1).sum(1).tolist()
        losses = reading.loss_NT.view(size, -1).sum(1).tolist()
        leavers = []
        for seat, index in enumerate(self._group):
            if index < 0:
                continue
            passed = margins[seat] >= params.margin
            found = Score(wrongs[seat], losses[seat])
            if passed or found.improves(self._reached[seat]):
                self._reached[seat], self._idle[seat] = found, 0
            else:
                self._idle[seat] += 1
            last = self._steps[seat] >= params.max_steps
            done = last or passed or self._idle[seat] >= params.patience
            changed = self._keep(seat, found, passed, done)
            if last or (done and not changed):
                rows = self._rows(seat)
                leavers.append((index, self._best_BC[rows].cpu(), self._steps[seat]))
                self._group[seat] = -1
                self._mask_BT[rows] = False
            else:
                self._steps[seat] += 1
        if self.occupied:
            self._cells_BC = self._adam.step(self._cells_BC, gradient_BC)
        return leavers

    def _keep(self, seat: int, found: Score, passed: bool, done: bool) -> bool:
        """Keep a seat's cells where they are its best; whether it is scored against other tokens from here.

        Only readings with the full softmax are compared: every one, or those when a group is due or done.
        """
        rows, changed = self._rows(seat), False
        if not self._scoring.exact:
            if not done and (self._steps[seat] + 1) % self._params.examine_steps:
                return False
            block = (self._cells_BC[rows], self._tokens_BT[rows], self._mask_BT[rows])
            reading, changed = self._scoring.examine(rows, *block)
            found = score(reading)
            if changed:
                self._forget(seat)
        if (passed and not changed) or found.improves(self._best[seat]):
            self._best[seat] = found
            self._best_BC[rows] = self._cells_BC[rows]
        return changed

    def _forget(self, seat: int) -> None:
        """Measure progress from the next reading on."""
        self._idle[seat] = 0
        self._reached[seat] = Score(self._tokens_BT[self._rows(seat)].numel() + 1, 0.0)

    def _rows(self, seat: int) -> slice:
        return slice(seat * self._tiles.group, (seat + 1) * self._tiles.group)
