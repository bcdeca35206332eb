"""LARC: low-rank corrections of a frozen language model that an episode updates from feedback."""

from tasks.larc.feedback import ExpectedCost, Feedback, RightCandidate, shares_of_owners
from tasks.larc.learner import Gradients, Learner
from tasks.larc.params import LarcParams
from tasks.larc.plain import plain_energies
from tasks.larc.question import Question
from tasks.larc.state import Episode, SlowState, begin, new_slow_state, read, reset, stack
from tasks.larc.updates import Update, change_norms, step, update

__all__ = [
    "Episode",
    "ExpectedCost",
    "Feedback",
    "Gradients",
    "LarcParams",
    "Learner",
    "Question",
    "RightCandidate",
    "SlowState",
    "Update",
    "begin",
    "change_norms",
    "new_slow_state",
    "plain_energies",
    "read",
    "reset",
    "shares_of_owners",
    "stack",
    "step",
    "update",
]
