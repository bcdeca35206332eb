"""A session as one safetensors payload: factors, streams, what is pending, memories, experts and the cursor.

Everything that is read back is looked at before it is used: a file may have been damaged or made by others.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.errors import BadPayload, TaskError
from tasks.larc import Episode, SlowState, begin
from tasks.replay.cases import CaseMemory
from tasks.replay.controller import Trust
from tasks.replay.experts import CLASSES, Experts
from tasks.replay.hedge import Hedge
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.paths import FAST
from tasks.replay.prompts import Prompts
from tasks.replay.session import Pending, State

MOST_PENDING_BYTES = 2 * 1024**2
MOST_SESSION_BYTES = 4 * 1024**2
"""Bounds of a live session (LARC 5; METHODS 2.3)."""
_ARRAYS = ("chances", "experts", "reads")


class SessionTooLarge(TaskError):
    """More jobs wait for their labels, or more is remembered, than a live session may hold."""


def session_tensors(state: State) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the JSON record of a session; raises `SessionTooLarge` beyond its bounds."""
    if state.pending_bytes > MOST_PENDING_BYTES:
        raise SessionTooLarge(
            f"{len(state.pending):,} jobs wait for their labels, more than the "
            f"{MOST_PENDING_BYTES // 1024**2} MiB that may; replay fewer paths or jobs"
        )
    tensors: dict[str, Tensor] = {}
    for path, episode in state.episodes.items():
        tensors[f"{path}.A"], tensors[f"{path}.B"] = episode.A_rD, episode.B_Dr
    waiting = list(state.pending.values())
    if waiting:
        for name, arrays in (
            ("chances", [one.chances_PC for one in waiting]),
            ("experts", [one.experts_EC for one in waiting]),
            ("reads", [one.reads_KC for one in waiting]),
        ):
            tensors[f"pending.{name}"] = torch.from_numpy(np.stack(arrays))
    record = {
        "cursor": state.cursor,
        "episodes": {
            path: {"steps": episode.steps, "stream": episode.stream.bit_generator.state}
            for path, episode in state.episodes.items()
        },
        "pending": [
            [job, one.prompts.plain, one.prompts.memory, one.era] for job, one in state.pending.items()
        ],
        "memories": {repository: memory.record() for repository, memory in state.memories.items()},
        "experts": state.experts.record(),
        "hedge4": state.hedge4.record(),
        "hedge5": state.hedge5.record(),
        "trust": state.trust.record(),
    }
    size = sum(tensor.nbytes for tensor in tensors.values()) + len(json.dumps(record).encode())
    if size > MOST_SESSION_BYTES:
        raise SessionTooLarge(
            f"the session of {', '.join(state.memories)[:80]} takes {size:,} bytes, more than the "
            f"{MOST_SESSION_BYTES // 1024**2} MiB that may; set a smaller replay.experts.keys"
        )
    return tensors, record


def restore_session(
    tensors: Mapping[str, Tensor],
    record: Mapping[str, Any],
    params: ReplayParams,
    paths: Sequence[PathName],
    slow: Mapping[str, SlowState],
) -> State:
    """The session behind tensors and record, its episodes bound to the slow states `task` and `original`.

    Raises `BadPayload` when they are not what `session_tensors` gave for these parameters and paths.
    """
    try:
        fast = [path for path in paths if path in FAST]
        if sorted(record["episodes"]) != sorted(fast):
            raise ValueError("it has other paths")
        episodes = {
            path: _episode(path, tensors, record["episodes"][path], slow[FAST[path].start]) for path in fast
        }
        memories = {
            str(repository): CaseMemory.from_record(cases, params.cases.cases, params.cases.case_bytes)
            for repository, cases in record["memories"].items()
        }
        cursor = record["cursor"]
        if type(cursor) is not int or cursor < 0:
            raise ValueError("its cursor is no number of events")
        return State(
            episodes,
            memories,
            Experts.from_record(record["experts"], params.experts),
            Hedge.from_record(record["hedge4"], 4),
            Hedge.from_record(record["hedge5"], 5),
            Trust.from_record(record["trust"]),
            _pending(tensors, record["pending"], len(paths)),
            cursor,
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadPayload(f"the session does not fit this replay ({error}); start it again") from error


def _episode(path: str, tensors: Mapping[str, Tensor], record: Any, slow: SlowState) -> Episode:
    A_rD, B_Dr = tensors[f"{path}.A"], tensors[f"{path}.B"]
    for found, bound in ((A_rD, slow.A_rD), (B_Dr, slow.B_Dr)):
        if found.shape != bound.shape or found.dtype != bound.dtype or not found.isfinite().all():
            raise ValueError(f"the factors of {path} are not those of its slow state")
    fresh = begin(slow, seed=0)
    fresh.stream.bit_generator.state = record["stream"]
    steps = record["steps"]
    if type(steps) is not int or steps < 0:
        raise ValueError(f"the steps of {path} are no number")
    return Episode(fresh.bound, A_rD.clone(), B_Dr.clone(), fresh.stream, steps)


def _pending(tensors: Mapping[str, Tensor], record: Any, paths: int) -> dict[str, Pending]:
    if not record:
        return {}
    chances, experts, reads = (tensors[f"pending.{name}"] for name in _ARRAYS)
    for array, most in ((chances, paths), (experts, 5), (reads, 2)):
        if array.dtype != torch.float64 or array.dim() != 3 or array.shape[::2] != (len(record), CLASSES):
            raise ValueError("what is pending has other shapes")
        if array.shape[1] > most or not bool(((array >= 0) & (array <= 1)).all()):
            raise ValueError("what is pending holds no chances")
    if chances.shape[1] != paths:
        raise ValueError("what is pending has other paths")
    found = {}
    for place, (job, plain, memory, era) in enumerate(record):
        if not all(isinstance(text, str) for text in (job, plain, memory)) or type(era) is not int:
            raise ValueError("what is pending holds no prompts")
        found[job] = Pending(
            Prompts(plain, memory),
            chances[place].numpy().copy(),
            experts[place].numpy().copy(),
            reads[place].numpy().copy(),
            era,
        )
    return found
