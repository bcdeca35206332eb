"""Memory cells: the stored form of a document, and its safetensors payload."""

from dataclasses import dataclass

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tasks.codec import CellDtype, CodecArchitecture, dequantise, quantise
from tasks.errors import BadPayload


@dataclass(frozen=True)
class MemoryCells:
    """A document's cells as stored: bfloat16 (N, C), or int8 (N, C) or int4 in uint8 (N, C / 2) with float32
    scales (N,).

    `length` is the number of tokens they stand for; the last cell may hold fewer than the others.
    """

    cells_NC: Tensor
    length: int
    scale_N: Tensor | None = None

    def __len__(self) -> int:
        return self.cells_NC.shape[0]

    @classmethod
    def from_float(cls, cells_NC: Tensor, length: int, dtype: CellDtype) -> "MemoryCells":
        """Round float32 cells to their stored form."""
        stored_NC, scale_N = quantise(cells_NC, dtype)
        return cls(stored_NC, length, scale_N)

    def dequantise(self) -> Tensor:
        """The cells as the decoder reads them, float32 (N, C)."""
        return dequantise(self.cells_NC, self.scale_N)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored numbers, without the payload's header."""
        values = self.cells_NC.numel() * self.cells_NC.element_size()
        return values + (0 if self.scale_N is None else self.scale_N.numel() * self.scale_N.element_size())


def encode_cells(memory: MemoryCells) -> bytes:
    """Safetensors payload: `cells`, `length` int32 (1,), `scale` of whole numbers; equal for equal cells."""
    tensors = {"cells": memory.cells_NC, "length": torch.tensor([memory.length], dtype=torch.int32)}
    if memory.scale_N is not None:
        tensors["scale"] = memory.scale_N
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def decode_cells(payload: bytes, architecture: CodecArchitecture) -> MemoryCells:
    """The cells of a payload; raises `BadPayload` when it holds none that a codec of this shape can read."""
    try:
        tensors = load(payload)
        cells_NC, length_1 = tensors["cells"], tensors["length"]
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadPayload(f"the payload holds no memory cells ({error}); check the reference") from error
    scale_N = tensors.get("scale")
    sound = (
        cells_NC.dim() == 2
        and length_1.shape == (1,)
        and length_1.dtype == torch.int32
        and cells_NC.dtype in ((torch.bfloat16,) if scale_N is None else (torch.int8, torch.uint8))
        and (scale_N is None or (scale_N.dtype == torch.float32 and scale_N.shape == cells_NC.shape[:1]))
    )
    if not sound:
        raise BadPayload("the payload's tensors are not those of memory cells; check the reference")
    length, halves = int(length_1), 2 if cells_NC.dtype == torch.uint8 else 1
    shape = (cells_NC.shape[0], cells_NC.shape[1] * halves)
    blocks = -(-length // architecture.block_tokens)
    if length < 1 or shape != (blocks, architecture.cell_width):
        raise BadPayload(
            f"the payload holds {shape[0]} cells of {shape[1]} numbers for {length} tokens, where its codec "
            f"makes {max(blocks, 0)} of {architecture.cell_width}; check the reference"
        )
    if not torch.isfinite(cells_NC if scale_N is None else scale_N).all():
        raise BadPayload("the payload's cells hold numbers that are not finite; check the reference")
    return MemoryCells(cells_NC, length, scale_N)
