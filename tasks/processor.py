"""What the processor at hand computes with, and how it takes memory."""

import ctypes
import sys

import torch

_NATIVE_BF16 = ("amx_bf16", "avx512_bf16", "bf16")
"""Instructions that multiply bfloat16: of x86 and of ARM."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BLOCKS = (64 * 1024**2, 32 * 1024**2)
"""Bytes of the largest blocks that are kept; glibc before 2.35 takes no more than the second."""
_KEPT_BYTES = 512 * 1024**2


def product_dtype(device: torch.device) -> torch.dtype:
    """The dtype of matrix products that may be bfloat16: that, or float32 on a processor that lacks bf16.

    Such a processor emulates them, several times slower than float32 and no closer to it.
    """
    if device.type != "cpu":
        return torch.bfloat16
    has = torch.cpu.get_capabilities()
    native = any(has.get(name) for name in _NATIVE_BF16)
    return torch.bfloat16 if native else torch.float32


def keep_freed_memory() -> bool:
    """Let the C library keep the memory that tensors free for the next ones; whether it does (glibc only).

    By itself it returns blocks of some MiB to the system, and the page faults of a next tensor then cost
    about as much as the product that fills it. Blocks up to 64 MiB (32 MiB of an old library) are kept, and
    512 MiB of free memory.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    # The other way round a refused size of blocks would leave every larger tensor to be mapped and unmapped.
    taken = any(mallopt(_M_MMAP_THRESHOLD, size) == 1 for size in _KEPT_BLOCKS)
    return taken and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES) == 1
