"""Tiles: the one shape in which workers run a codec, so that neighbours change no document's numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.codec import BlockGroups, Codec, Reading, group_documents, read_cells
from tasks.errors import TaskError


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
        """Read blocks whose cells already went through their stored form, in whole groups."""
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


def no_groups(tiles: Tiles) -> BlockGroups:
    """None of the groups that these tiles are made of."""
    return group_documents([], tiles.codec.architecture)
