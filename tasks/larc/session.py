"""A live session on disk: fast factors, what they are bound to, random streams, pending feedback and memory.

One safetensors file whose header holds a JSON record; nothing in it is executed. A loaded session goes on,
bit for bit, where the saved one stood (LARC, "Reset and resume serve different purposes").
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from tasks.checkpoint import write_whole
from tasks.errors import BadPayload, SessionFull
from tasks.larc.params import MODULE, MOST_LAYERS, MOST_RANK
from tasks.larc.record import read_record
from tasks.larc.residual import check_finite, checked_factors
from tasks.larc.state import Episode, SlowState
from tasks.payload import pack_tensors, unpack_tensors

LIVE_BYTES = 4 * 1024**2
"""Of a whole session (LARC 2.3)."""
PENDING_BYTES = 2 * 1024**2
"""Of its pending feedback as JSON (LARC 2.3)."""
_WHAT = "larc-session"

Json = Any


@dataclass(frozen=True)
class Session:
    """Everything that decides how a session goes on."""

    host: str
    """Version of the host that its factors correct."""
    episodes: Mapping[str, Episode]
    """Named fast states, such as the paths of a replay."""
    cursor: int = 0
    """How many events it has taken in."""
    pending: list[Json] = field(default_factory=list)
    """Predictions whose feedback has not arrived, each with the prompt that it was made from."""
    memory: list[Json] = field(default_factory=list)
    """Completed cases that prompts may show."""
    records: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else its owner keeps, as JSON."""


class _Stream(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    state: int = Field(ge=0, lt=2**128)
    inc: int = Field(ge=0, lt=2**128)
    has_uint32: Literal[0, 1]
    uinteger: int = Field(ge=0, lt=2**32)


class _Episode(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rank: int = Field(ge=1, le=MOST_RANK)
    width: int = Field(ge=1, le=LIVE_BYTES)
    outputs: int = Field(ge=1, le=LIVE_BYTES)
    insertion: int = Field(ge=0, le=MOST_LAYERS)
    module: str = Field(pattern=MODULE)
    version: int = Field(ge=0, le=2**53)
    steps: int = Field(ge=0, le=2**53)
    stream: _Stream


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    host: str = Field(pattern=r"^[0-9a-f]{64}$")
    episodes: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")], _Episode]
    cursor: int = Field(ge=0, le=2**53)
    pending: list[Any]
    memory: list[Any]
    records: dict[str, Any]


_FACTORS = (("bound.A", "bound.B"), ("A", "B"))


def encode_session(session: Session) -> bytes:
    """A session as bytes; equal sessions give equal bytes.

    Raises `SessionFull` where pending feedback, or all of it, is larger than a session may be, and `Diverged`
    where a factor is not finite: it could not be resumed.
    """
    for name, one in session.episodes.items():
        check_finite(one.A_rD, one.B_Dr, one.bound.A_rD, one.bound.B_Dr, what=f"episode {name}")
    pending = len(json.dumps(session.pending, allow_nan=False).encode())
    if pending > PENDING_BYTES:
        raise SessionFull(
            f"{len(session.pending):,} pending predictions take {pending:,} bytes; a session holds "
            f"{PENDING_BYTES:,}: shorten prompts, or let feedback arrive before predicting more"
        )
    record = _Record(
        host=session.host,
        episodes={name: _describe(episode) for name, episode in session.episodes.items()},
        cursor=session.cursor,
        pending=session.pending,
        memory=session.memory,
        records=dict(session.records),
    )
    tensors: dict[str, Tensor] = {}
    for name, one in session.episodes.items():
        held = (one.bound.A_rD, one.bound.B_Dr), (one.A_rD, one.B_Dr)
        for names, factors in zip(_FACTORS, held, strict=True):
            tensors |= {f"{name}.{key}": factor for key, factor in zip(names, factors, strict=True)}
    payload = pack_tensors(tensors, what=_WHAT, record=record.model_dump())
    if len(payload) > LIVE_BYTES:
        raise SessionFull(
            f"the session takes {len(payload):,} bytes, {LIVE_BYTES:,} at most; keep fewer episodes or cases"
        )
    return payload


def decode_session(payload: bytes, *, host: str, width: int) -> Session:
    """The session of these bytes, for the host of this version and hidden size.

    Raises `BadPayload` when they hold none, or one whose parts do not fit each other or the host.
    """
    if len(payload) > LIVE_BYTES:
        raise BadPayload(f"the session has {len(payload):,} bytes, {LIVE_BYTES:,} at most; begin a new one")
    tensors, said = unpack_tensors(payload, what=_WHAT)
    record = read_record(_Record, said, what="session", remedy="begin a new session")
    if record.host != host:
        raise BadPayload(
            f"the session is of host {record.host[:12]}, not {host[:12]}; go on with the host it began with"
        )
    if len(json.dumps(record.pending).encode()) > PENDING_BYTES:
        raise BadPayload(
            f"the session's pending feedback is over {PENDING_BYTES:,} bytes; begin a new session"
        )
    if len(tensors) != 4 * len(record.episodes):
        raise BadPayload(
            f"the session holds {len(tensors)} tensors for {len(record.episodes)} episodes, not four each; "
            "begin a new session"
        )
    episodes = {}
    for name, one in record.episodes.items():
        if not one.module and (one.width, one.outputs) != (width, width):
            raise BadPayload(f"episode {name} is {one.width} wide, its host {width}; begin a new session")
        bound, fast = (
            checked_factors(
                tensors, (f"{name}.{A}", f"{name}.{B}"), one.rank, one.width, one.outputs, what="session"
            )
            for A, B in _FACTORS
        )
        slow = SlowState(*bound, version=one.version, insertion=one.insertion, module=one.module)
        episodes[name] = Episode(slow, *fast, _stream(one.stream), one.steps)
    return Session(host, episodes, record.cursor, record.pending, record.memory, record.records)


def save_session(path: Path, session: Session) -> Path:
    """Write a session; a reader sees the earlier one or this one, never a part.

    Raises `SessionFull` as `encode_session` does, and `DiskFull` when there is no room; the earlier file is
    then still in place.
    """
    return write_whole(path, encode_session(session), what="a session")


def load_session(path: Path, *, host: str, width: int) -> Session:
    """Resume the session that was saved there. Raises `BadPayload` as `decode_session` does."""
    with path.open("rb") as file:
        payload = file.read(LIVE_BYTES + 1)
    try:
        return decode_session(payload, host=host, width=width)
    except BadPayload as error:
        raise BadPayload(f"{path}: {error}") from error


def _describe(episode: Episode) -> _Episode:
    bound = episode.bound
    state = episode.stream.bit_generator.state
    return _Episode(
        rank=bound.rank,
        width=bound.width,
        outputs=bound.outputs,
        insertion=bound.insertion,
        module=bound.module,
        version=bound.version,
        steps=episode.steps,
        stream=_Stream(
            state=state["state"]["state"],
            inc=state["state"]["inc"],
            has_uint32=state["has_uint32"],
            uinteger=state["uinteger"],
        ),
    )


def _stream(saved: _Stream) -> np.random.Generator:
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": saved.state, "inc": saved.inc},
        "has_uint32": saved.has_uint32,
        "uinteger": saved.uinteger,
    }
    return np.random.Generator(bits)
