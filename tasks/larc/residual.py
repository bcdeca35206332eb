"""The payload of a slow state: an element of kind `residual`, bound to the version of its host."""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from tasks.errors import BadPayload, Diverged
from tasks.larc.params import MODULE, MOST_LAYERS, MOST_RANK
from tasks.larc.record import read_record
from tasks.larc.state import SlowState
from tasks.payload import pack_tensors, unpack_tensors

MOST_BYTES = 64 * 1024**2
"""Of a residual's payload: rank 256 at width 32,768."""
_WHAT = "residual"


class _Record(BaseModel):
    """What the header says of the factors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    host: str = Field(pattern=r"^[0-9a-f]{64}$")
    rank: int = Field(ge=1, le=MOST_RANK)
    width: int = Field(ge=1, le=1_048_576)
    outputs: int = Field(ge=1, le=1_048_576)
    insertion: int = Field(ge=0, le=MOST_LAYERS)
    module: str = Field(default="", pattern=MODULE)
    version: int = Field(ge=0, le=2**53)
    scale: Literal[1]


def encode_residual(slow: SlowState, host: str) -> bytes:
    """A slow state as safetensors, with the version of the host that it corrects.

    Raises `Diverged` where a factor is not finite: it could not be opened again.
    """
    check_finite(slow.A_rD, slow.B_Dr, what=f"the slow state after {slow.version} updates")
    record = _Record(
        host=host,
        rank=slow.rank,
        width=slow.width,
        outputs=slow.outputs,
        insertion=slow.insertion,
        module=slow.module,
        version=slow.version,
        scale=1,
    )
    tensors = {"A": slow.A_rD, "B": slow.B_Dr}
    return pack_tensors(tensors, what=_WHAT, record=record.model_dump())


def load_residual(payload: bytes, *, host: str | None = None, width: int | None = None) -> SlowState:
    """The slow state of a payload; `host` is the version and `width` the hidden size that it has to fit.

    Raises `BadPayload` when the bytes hold no residual, when factors and record differ, when a number is not
    finite, or when it belongs to another host.
    """
    if len(payload) > MOST_BYTES:
        raise BadPayload(f"the payload has {len(payload):,} bytes, a residual {MOST_BYTES:,} at most")
    tensors, said = unpack_tensors(payload, what=_WHAT)
    record = read_record(_Record, said, what="residual", remedy="check the reference")
    if host is not None and record.host != host:
        raise BadPayload(
            f"the residual corrects host {record.host[:12]}, not {host[:12]}; open it with that host"
        )
    if width is not None and not record.module and (record.width, record.outputs) != (width, width):
        raise BadPayload(f"the residual is {record.width} wide and its host {width}; check the reference")
    sizes = record.rank, record.width, record.outputs
    A_rD, B_Dr = checked_factors(tensors, ("A", "B"), *sizes, what=_WHAT)
    return SlowState(A_rD, B_Dr, record.version, record.insertion, record.module)


def check_finite(*factors: Tensor, what: str) -> None:
    """Raise `Diverged` unless all numbers of these factors are finite."""
    if not all(bool(factor.isfinite().all()) for factor in factors):
        raise Diverged(
            f"the factors of {what} are not finite; take smaller steps, or go back to the state before"
        )


def checked_factors(
    tensors: dict[str, Tensor], names: tuple[str, str], rank: int, width: int, outputs: int, *, what: str
) -> tuple[Tensor, Tensor]:
    """The two factors of these names; `BadPayload` unless they are float32, finite and of these sizes."""
    found = []
    for name, shape in zip(names, ((rank, width), (outputs, rank)), strict=True):
        tensor = tensors.get(name)
        if tensor is None or tensor.dtype != torch.float32 or tuple(tensor.shape) != shape:
            held = "missing" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
            raise BadPayload(f"{name} of the {what} is {held}, not float32 {shape}; check where it came from")
        if not bool(tensor.isfinite().all()):
            raise BadPayload(
                f"{name} of the {what} holds a number that is not finite; use an earlier version"
            )
        found.append(tensor)
    return found[0], found[1]
