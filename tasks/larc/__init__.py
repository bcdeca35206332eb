"""LARC: low-rank corrections of a frozen language model that an episode updates from feedback."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.larc.feedback import ExpectedCost, Feedback, RightCandidate, shares_of_owners
    from tasks.larc.learner import Gradients, Learner
    from tasks.larc.lora import LoraLearner
    from tasks.larc.params import LarcParams
    from tasks.larc.plain import plain_energies
    from tasks.larc.question import Question
    from tasks.larc.residual import encode_residual, load_residual
    from tasks.larc.session import (
        LIVE_BYTES,
        PENDING_BYTES,
        Session,
        decode_session,
        encode_session,
        load_session,
        save_session,
    )
    from tasks.larc.state import Episode, SlowState, begin, new_slow_state, read, reset, stack
    from tasks.larc.step import find_residual, open_residual, residual_element
    from tasks.larc.updates import Update, change_norms, step, update

__all__ = [
    "LIVE_BYTES",
    "PENDING_BYTES",
    "Episode",
    "ExpectedCost",
    "Feedback",
    "Gradients",
    "LarcParams",
    "Learner",
    "LoraLearner",
    "Question",
    "RightCandidate",
    "Session",
    "SlowState",
    "Update",
    "begin",
    "change_norms",
    "decode_session",
    "encode_residual",
    "encode_session",
    "find_residual",
    "load_residual",
    "load_session",
    "new_slow_state",
    "open_residual",
    "plain_energies",
    "read",
    "reset",
    "residual_element",
    "save_session",
    "shares_of_owners",
    "stack",
    "step",
    "update",
]

export_lazily(__name__)
