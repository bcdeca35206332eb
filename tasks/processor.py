"""What the processor at hand computes with."""

import torch

_NATIVE_BF16 = ("amx_bf16", "avx512_bf16", "bf16")
"""Instructions that multiply bfloat16: of x86 and of ARM."""


def product_dtype(device: torch.device) -> torch.dtype:
    """The dtype of matrix products that may be bfloat16: that, or float32 on a processor that lacks bf16.

    Such a processor emulates them, several times slower than float32 and no closer to it.
    """
    if device.type != "cpu":
        return torch.bfloat16
    has = torch.cpu.get_capabilities()
    native = any(has.get(name) for name in _NATIVE_BF16)
    return torch.bfloat16 if native else torch.float32
