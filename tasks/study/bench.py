"""What a study computes with: its host, and the questions that it is asked."""

from functools import cached_property

from tasks.hosts import Host
from tasks.larc import Learner, LoraLearner
from tasks.study.questions import Questioner
from tasks.study.recipes import Plan


class Bench:
    """A host and the questions that it is asked; both are made when something has to be computed."""

    def __init__(self, plan: Plan, host: Host) -> None:
        """`host` is the plan's."""
        self._plan, self.host = plan, host

    @cached_property
    def learner(self) -> Learner:
        """The host with the plan's correction: LARC, or LoRA where the study names a module."""
        larc, module = self._plan.larc, self._plan.study.module
        if module:
            return LoraLearner(
                self.host,
                larc.insertion,
                module=module,
                tokens=larc.tokens,
                checkpointing=larc.checkpointing,
            )
        return Learner(self.host, larc.insertion, tokens=larc.tokens, checkpointing=larc.checkpointing)

    @cached_property
    def questioner(self) -> Questioner:
        """Puts the plan's programs into the host's tokens."""
        return Questioner(self.host.encode, self.host.end, self._plan.programs, self._plan.study)
