"""A replay's state as a live session of the low-rank learner, and back (LARC 5).

Prompts and predictions that wait for their labels are the session's pending feedback, cases are its memory;
its file is bounded there. Whatever is read back is looked at before it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch

from tasks.errors import BadPayload, SessionFull
from tasks.larc import LIVE_BYTES, Episode, Session, SlowState
from tasks.replay.cases import CaseMemory
from tasks.replay.controller import Trust
from tasks.replay.experts import CLASSES, Experts
from tasks.replay.hedge import Hedge
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.paths import FAST
from tasks.replay.prompts import Prompts
from tasks.replay.session import Pending, State


def check_room(paths: Sequence[PathName], slow: SlowState) -> None:
    """Raise `SessionFull` where the factors of the learning paths alone are larger than a live session.

    It is said before anything is computed, and not by the first checkpoint after the audit began.
    """
    fast = sum(path in paths for path in FAST)
    needed = fast * 2 * (slow.A_rD.nbytes + slow.B_Dr.nbytes)  # each path's own, and those it is bound to
    if needed > LIVE_BYTES:
        raise SessionFull(
            f"the factors of {fast} learning paths of rank {slow.rank} take {needed:,} bytes of a session's "
            f"{LIVE_BYTES:,}; set a lower larc.rank, or fewer replay.paths"
        )


def session_of(state: State, host: str) -> Session:
    """The state as a session of that version of a host."""
    return Session(
        host=host,
        episodes=cast(Mapping[str, Episode], state.episodes),
        cursor=state.cursor,
        pending=[
            {
                "job": job,
                "plain": one.prompts.plain,
                "memory": one.prompts.memory,
                "chances": one.chances_PC.tolist(),
                "experts": one.experts_EC.tolist(),
                "reads": one.reads_KC.tolist(),
                "joined": one.joined_KC.tolist(),
                "era": one.era,
            }
            for job, one in state.pending.items()
        ],
        memory=[[repository, memory.record()] for repository, memory in state.memories.items()],
        records={
            "experts": state.experts.record(),
            "hedge4": state.hedge4.record(),
            "policy_trust": state.policy_trust.record(),
            "trust": state.trust.record(),
        },
    )


def state_of(
    session: Session,
    params: ReplayParams,
    paths: Sequence[PathName],
    slow: Mapping[str, SlowState],
) -> State:
    """The state behind a session, whose episodes are bound to the slow states `task` and `original`.

    Raises `BadPayload` when the session is of other paths, slow states or parameters.
    """
    # In the order in which a replay begins them: it decides the places in batches, and so the last bits.
    fast = [path for path in FAST if path in paths]
    if sorted(session.episodes) != sorted(fast):
        raise BadPayload("the session has other paths than this replay; start the replay again")
    for path in fast:
        _check_bound(path, session.episodes[path].bound, slow[FAST[path].start])
    try:
        return State(
            {path: session.episodes[path] for path in fast},
            {
                str(repository): CaseMemory.from_record(cases, params.cases.cases, params.cases.case_bytes)
                for repository, cases in session.memory
            },
            Experts.from_record(session.records["experts"], params.experts),
            Hedge.from_record(session.records["hedge4"], 4),
            Trust.from_record(session.records["policy_trust"]),
            Trust.from_record(session.records["trust"]),
            dict(_pending(one, len(paths)) for one in session.pending),
            session.cursor,
        )
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, BadPayload):
            raise
        raise BadPayload(f"the session does not fit this replay ({error}); start it again") from error


def _check_bound(path: str, found: SlowState, expected: SlowState) -> None:
    pairs = ((found.A_rD, expected.A_rD), (found.B_Dr, expected.B_Dr))
    if not all(one.shape == other.shape and torch.equal(one, other) for one, other in pairs):
        raise BadPayload(
            f"the session's factors of {path} are bound to another slow state; start the replay again"
        )


def _pending(record: Any, paths: int) -> tuple[str, Pending]:
    texts = record["job"], record["plain"], record["memory"]
    if not all(isinstance(text, str) for text in texts) or type(record["era"]) is not int:
        raise ValueError("what is pending holds no prompts")
    chances = _chances(record["chances"], {paths})
    experts, reads = _chances(record["experts"], {0, 4}), _chances(record["reads"], {0, 2})
    joined = _chances(record["joined"], {0, 2})
    return texts[0], Pending(Prompts(*texts[1:]), chances, experts, reads, joined, record["era"])


def _chances(record: Any, counts: set[int]) -> np.ndarray:
    """Rows of four chances, as many as one of `counts`; float64."""
    found = np.array(record, np.float64).reshape(-1, CLASSES)
    if len(found) not in counts or not ((found >= 0) & (found <= 1)).all():
        raise ValueError("what is pending holds no chances")
    return found
