"""What blocks under adaptation are scored against: the whole vocabulary, or candidates of a large one.

Candidates make a step cheap. Every few steps, and before it leaves, a block is read with the full softmax:
tokens that come closer than the margin become candidates, and only such readings say which cells are best.
"""

from typing import Protocol

import torch
from torch import Tensor

from tasks.codec import (
    Candidates,
    Reading,
    as_stored,
    read_candidates_with_gradient,
    read_with_gradient,
    read_with_rivals,
)
from tasks.errors import TaskError
from tasks.memory.params import MemoryParams
from tasks.memory.tiles import Tiles
from tasks.processor import product_dtype


class Scoring(Protocol):
    """How the rows of one tile are scored; rows of a group come and go together."""

    @property
    def exact(self) -> bool:
        """Whether `read` itself uses the full softmax."""
        ...

    def survey(self, stored_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        """Read a tile with the full softmax; also the hard negatives of each slot, int64 (B, T, R)."""
        ...

    def admit(self, rows: slice, tokens_GT: Tensor, mask_GT: Tensor, rivals_GTR: Tensor) -> None:
        """Make ready for the group that takes these rows."""
        ...

    def read(self, cells_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        """Read the tile's cells as stored, and the gradient of their summed loss, (B, C)."""
        ...

    def examine(
        self, rows: slice, cells_GC: Tensor, tokens_GT: Tensor, mask_GT: Tensor
    ) -> tuple[Reading, bool]:
        """Read a group's cells with the full softmax; whether that changed what it is scored against."""
        ...


class WholeVocabulary:
    """Every step is scored with the full softmax."""

    exact = True

    def __init__(self, tiles: Tiles, params: MemoryParams) -> None:
        self._tiles = tiles
        self._dtype = params.dtype

    def survey(self, stored_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        none_BT0 = torch.zeros(*tokens_BT.shape, 0, dtype=torch.int64)
        return self._tiles.read(stored_BC, tokens_BT, mask_BT), none_BT0

    def admit(self, rows: slice, tokens_GT: Tensor, mask_GT: Tensor, rivals_GTR: Tensor) -> None:
        """Nothing depends on which group it is."""

    def read(self, cells_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        return read_with_gradient(self._tiles.codec, cells_BC, tokens_BT, mask_BT, self._dtype)

    def examine(
        self, rows: slice, cells_GC: Tensor, tokens_GT: Tensor, mask_GT: Tensor
    ) -> tuple[Reading, bool]:
        stored_GC = as_stored(cells_GC, self._dtype)
        return self._tiles.read(stored_GC, tokens_GT, mask_GT), False


class CandidateScoring:
    """Steps are scored against candidates, examinations against the whole vocabulary."""

    exact = False

    def __init__(self, tiles: Tiles, params: MemoryParams) -> None:
        if params.candidates <= tiles.block_tokens:
            raise TaskError(
                f"{params.candidates} candidates are too few for blocks of {tiles.block_tokens} tokens, all "
                "of which are candidates; raise memory.candidates"
            )
        self._tiles = tiles
        self._params = params
        blocks = tiles.size * tiles.group
        products = worker_products(params, tiles.device)
        self._candidates = Candidates(tiles.codec, blocks, params.candidates, products)

    def survey(self, stored_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        codec = self._tiles.codec
        with torch.no_grad():
            slots_BTS = codec.slots(stored_BC, codec.parents(stored_BC, mask_BT.any(1)))
        return read_with_rivals(codec, slots_BTS, tokens_BT, mask_BT, self._params.hard_negatives)

    def admit(self, rows: slice, tokens_GT: Tensor, mask_GT: Tensor, rivals_GTR: Tensor) -> None:
        for row, *block in zip(
            range(rows.start, rows.stop), tokens_GT, mask_GT, rivals_GTR.to(tokens_GT.device), strict=True
        ):
            self._candidates.put(row, *block)

    def read(self, cells_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor) -> tuple[Reading, Tensor]:
        return read_candidates_with_gradient(
            self._tiles.codec, cells_BC, tokens_BT, mask_BT, self._params.dtype, self._candidates
        )

    def examine(
        self, rows: slice, cells_GC: Tensor, tokens_GT: Tensor, mask_GT: Tensor
    ) -> tuple[Reading, bool]:
        """Read the group's cells with the full softmax; tokens too close to a true one become candidates."""
        reading, rivals_GTR = self.survey(as_stored(cells_GC, self._params.dtype), tokens_GT, mask_GT)
        close_GT = (reading.margin_NT < self._params.margin) & mask_GT
        added = [
            self._candidates.add(row, rivals_TR[close_T].T.flatten().tolist())
            for row, rivals_TR, close_T in zip(
                range(rows.start, rows.stop), rivals_GTR, close_GT, strict=True
            )
        ]
        return reading, any(added)


def scoring(tiles: Tiles, params: MemoryParams) -> Scoring:
    """The scoring that the parameters want for the codec's vocabulary."""
    large = tiles.codec.vocab_size > params.whole_vocabulary
    return CandidateScoring(tiles, params) if large else WholeVocabulary(tiles, params)


def worker_products(params: MemoryParams, device: torch.device) -> torch.dtype:
    """The dtype in which steps over candidates multiply; readings with the full softmax are in float32."""
    return product_dtype(device) if params.products == "bfloat16" else torch.float32
