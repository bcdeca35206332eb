"""The stored form of a document."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from torch import Tensor

from tasks.codec import CellDtype, CodecArchitecture
from tasks.errors import BadPayload
from tasks.memory import MemoryCells, decode_cells, encode_cells

SHAPE = CodecArchitecture(block_tokens=8, cell_width=16)
DTYPES: list[CellDtype] = ["bfloat16", "int8", "int4"]


@settings(deadline=None)
@given(st.integers(1, 40), st.sampled_from(DTYPES), st.integers(0, 999))
def test_a_payload_gives_the_same_cells_back(length: int, dtype: CellDtype, seed: int) -> None:
    blocks = -(-length // SHAPE.block_tokens)
    cells_NC = torch.randn(blocks, 16, generator=torch.Generator().manual_seed(seed))
    memory = MemoryCells.from_float(cells_NC, length, dtype)

    payload = encode_cells(memory)
    read = decode_cells(payload, SHAPE)

    assert read.length == length
    assert len(read) == blocks
    assert torch.equal(read.dequantise(), memory.dequantise())
    assert encode_cells(read) == payload
    step = {"bfloat16": 0.02, "int8": 0.02, "int4": 0.3}[dtype] * float(cells_NC.abs().max())
    torch.testing.assert_close(read.dequantise(), cells_NC, atol=step, rtol=0.01)


def test_stored_bytes_are_counted_without_the_header() -> None:
    cells_NC = torch.ones(3, 768)

    assert MemoryCells.from_float(cells_NC, 130, "bfloat16").nbytes == 3 * 1536
    assert MemoryCells.from_float(cells_NC, 130, "int8").nbytes == 3 * 772
    assert MemoryCells.from_float(cells_NC, 130, "int4").nbytes == 3 * 388


def cells(count: int, width: int = 16, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.ones(count, width).to(dtype)


def tokens(length: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.tensor([length], dtype=dtype)


@pytest.mark.parametrize(
    "tensors",
    [
        {"cells": cells(2)},
        {"cells": cells(2, dtype=torch.float32), "length": tokens(16)},
        {"cells": cells(2).flatten(), "length": tokens(16)},
        {"cells": cells(2), "length": tokens(16, torch.int64)},
        {"cells": cells(2), "length": torch.ones(2, dtype=torch.int32)},
        {"cells": cells(2), "length": tokens(17)},
        {"cells": cells(2), "length": tokens(8)},
        {"cells": cells(2), "length": tokens(-9)},
        {"cells": cells(0), "length": tokens(0)},
        {"cells": cells(2, 24), "length": tokens(16)},
        {"cells": cells(2) * torch.nan, "length": tokens(16)},
        {"cells": cells(2, dtype=torch.int8), "length": tokens(16), "scale": torch.ones(3)},
        {"cells": cells(2, dtype=torch.int8), "length": tokens(16), "scale": torch.ones(2) / 0},
    ],
)
def test_what_holds_no_cells_of_the_codec_is_refused(tensors: dict[str, Tensor]) -> None:
    with pytest.raises(BadPayload):
        decode_cells(save(tensors), SHAPE)


@pytest.mark.parametrize("payload", [b"", b"\x00" * 40])
def test_bytes_that_hold_no_tensors_are_refused(payload: bytes) -> None:
    with pytest.raises(BadPayload, match="holds no memory cells"):
        decode_cells(payload, SHAPE)
