"""The stored form of a document."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from tasks.codec import CellDtype
from tasks.errors import BadPayload
from tasks.memory import MemoryCells, decode_cells, encode_cells

DTYPES: list[CellDtype] = ["bfloat16", "int8"]


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 300), st.sampled_from(DTYPES), st.integers(0, 999))
def test_a_payload_gives_the_same_cells_back(blocks: int, length: int, dtype: CellDtype, seed: int) -> None:
    cells_NC = torch.randn(blocks, 16, generator=torch.Generator().manual_seed(seed))
    memory = MemoryCells.from_float(cells_NC, length, dtype)

    payload = encode_cells(memory)
    read = decode_cells(payload)

    assert read.length == length
    assert len(read) == blocks
    assert torch.equal(read.dequantise(), memory.dequantise())
    assert encode_cells(read) == payload
    torch.testing.assert_close(read.dequantise(), cells_NC, atol=0.03, rtol=0.01)


def test_stored_bytes_are_counted_without_the_header() -> None:
    cells_NC = torch.ones(3, 768)

    assert MemoryCells.from_float(cells_NC, 130, "bfloat16").nbytes == 3 * 1536
    assert MemoryCells.from_float(cells_NC, 130, "int8").nbytes == 3 * 772


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00" * 40,
        save({"cells": torch.ones(2, 4, dtype=torch.bfloat16)}),
        save({"cells": torch.ones(2, 4), "length": torch.ones(1, dtype=torch.int32)}),
        save({"cells": torch.ones(8, dtype=torch.bfloat16), "length": torch.ones(1, dtype=torch.int32)}),
        save(
            {
                "cells": torch.ones(2, 4, dtype=torch.int8),
                "scale": torch.ones(3),
                "length": torch.ones(1, dtype=torch.int32),
            }
        ),
    ],
)
def test_what_holds_no_cells_is_refused(payload: bytes) -> None:
    with pytest.raises(BadPayload):
        decode_cells(payload)
