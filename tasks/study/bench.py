"""What a study computes with: a host that is opened when it is needed, and the questions it is asked."""

from functools import cached_property
from pathlib import Path

from store import Store
from tasks.hosts import Host, open_host
from tasks.larc import Learner, LoraLearner
from tasks.progress import Progress, silent
from tasks.study.questions import Questioner
from tasks.study.recipes import Plan


class Bench:
    """A host, opened when something has to be computed with it, and the questions that it is asked."""

    def __init__(
        self, store: Store, plan: Plan, hosts: Path, *, device: str = "cpu", progress: Progress = silent
    ) -> None:
        """`hosts` is the folder of host folders; `progress` counts the megabytes of opening one."""
        self._store, self._plan, self._hosts = store, plan, hosts
        self._device, self._progress = device, progress

    @cached_property
    def host(self) -> Host:
        """The plan's host, checked against what was published."""
        return open_host(
            self._store,
            self._hosts,
            self._plan.host,
            device=self._device,
            dtype=self._plan.host_params.dtype,
            progress=self._progress,
        )

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
