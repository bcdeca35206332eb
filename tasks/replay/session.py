"""A live session: what a replay knows between two events, and how it goes on with the next one (LARC 5).

Its order is that of a real one: a job is predicted from what is known at its start, its prompt and
predictions are kept until its label arrives, then all paths learn, and only then the case enters the memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tasks.larc import Episode, reset
from tasks.replay.calibration import softmax
from tasks.replay.cases import Case, CaseMemory
from tasks.replay.controller import Trust
from tasks.replay.experts import INDEX, Experts
from tasks.replay.hedge import Hedge, half_brier
from tasks.replay.jobs import Job, Label
from tasks.replay.learning import Arrival, PathUpdate, learn_batch
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.paths import FAST, RESET
from tasks.replay.policy import Policy, ReadAhead
from tasks.replay.prompts import Prompts, View, job_prompts
from tasks.replay.queue import Event


@dataclass(frozen=True)
class Pending:
    """A predicted job whose label has not arrived: its prompts, and what was predicted from them."""

    prompts: Prompts
    chances_PC: np.ndarray
    """(paths, 4) float64, in the order of the session's paths."""
    experts_EC: np.ndarray
    """(4, 4) float64 predictions of HEDGE4's experts; (0, 4) without HEDGE."""
    reads_KC: np.ndarray
    """(2, 4) float64: the controller's reads at the kept and at the slow state; (0, 4) without controller."""
    joined_KC: np.ndarray
    """(2, 4) float64: the controller's and HEDGE4's predictions, for HEDGE5; (0, 4) without it."""
    era: int
    """Of the kept state that was read."""


@dataclass
class State:
    """Everything that a session learns or remembers."""

    episodes: dict[PathName, Episode]
    memories: dict[str, CaseMemory]
    experts: Experts
    hedge4: Hedge
    policy_trust: Trust
    """HEDGE5's in the controller, beside HEDGE4."""
    trust: Trust
    pending: dict[str, Pending] = field(default_factory=dict)
    cursor: int = 0
    """Events that are done."""


class Replayer:
    """Predicts at starts and learns at completions, for the paths that it is asked for.

    `ahead` holds reads at the slow state of the task fit by view; they are needed by the reset paths and by
    the controller. `biases_C` are the calibrated control's.
    """

    def __init__(
        self,
        policy: Policy,
        params: ReplayParams,
        paths: Sequence[PathName],
        state: State,
        *,
        ahead: Mapping[View, ReadAhead],
        biases_C: np.ndarray | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self.state = state
        self._policy = policy
        self._params = params
        self._ahead = ahead
        self._biases_C = biases_C
        self._hedges = any(path in paths for path in ("hedge4", "hedge5"))

    def predict(self, event: Event) -> dict[str, np.ndarray]:
        """Predict the jobs that start, from what is known now: chances (paths, 4) by job id."""
        state = self.state
        prompts = {
            job.id: job_prompts(job, state.memories[job.repository], self._params.cases) for job in event.jobs
        }
        energies = self._fast_reads(event.jobs, prompts)
        found = {}
        for job in event.jobs:
            chances: dict[PathName, np.ndarray] = {
                path: softmax(by_job[job.id]) for path, by_job in energies.items()
            }
            for path, view in RESET.items():
                if path in self.paths:
                    chances[path] = softmax(self._ahead[view].energies(job.id))
            if "calibrated" in self.paths and self._biases_C is not None:
                chances["calibrated"] = softmax(energies["original"][job.id] + self._biases_C)
            reads_KC = np.zeros((0, len(INDEX)))
            if "controller" in chances:
                slow_C = softmax(self._ahead["memory"].energies(job.id))
                reads_KC = np.stack([chances["controller"], slow_C])
                chances["controller"] = state.trust.mix(*reads_KC)
            experts_EC, joined_KC = self._expert_reads(job, chances)
            pending = Pending(
                prompts[job.id],
                np.array([chances[path] for path in self.paths]).reshape(-1, len(INDEX)),
                experts_EC,
                reads_KC,
                joined_KC,
                state.trust.era,
            )
            state.pending[job.id] = pending
            found[job.id] = pending.chances_PC
        return found

    def learn(self, event: Event) -> list[PathUpdate]:
        """Take the labels of the jobs that complete: every path learns, then the cases are remembered."""
        state = self.state
        waiting = [(job, state.pending.pop(job.id)) for job in event.jobs]
        arrivals = [Arrival(one.prompts, INDEX[label_of(job)]) for job, one in waiting]
        state.episodes, updates = learn_batch(
            self._policy, state.episodes, arrivals, self._params, measure=self._params.measure
        )
        for job, one in waiting:
            label = INDEX[label_of(job)]
            if self._hedges:
                state.hedge4.learn(one.experts_EC, label)
                state.experts.learn(job)
            state.policy_trust = self._trusted(state.policy_trust, one.joined_KC, label, 0)
            state.trust = self._trusted(state.trust, one.reads_KC, label, one.era)
        if "controller" in state.episodes and state.trust.gone(self._params.controller):
            state.episodes["controller"] = reset(state.episodes["controller"])
            state.trust = state.trust.restarted(self._params.controller)
            updates = [
                replace(one, decision="reset", distance=0.0) if one.path == "controller" else one
                for one in updates
            ]
        for job, _ in waiting:
            state.memories[job.repository].add(Case.of(job))
        return updates

    def _fast_reads(
        self, jobs: Iterable[Job], prompts: Mapping[str, Prompts]
    ) -> dict[PathName, dict[str, np.ndarray]]:
        """Energies of every learning path for every job, in one batch of reads.

        A path that is where it began, at the slow state of the task fit, is read with that state's reads.
        """
        jobs = list(jobs)
        found: dict[PathName, dict[str, np.ndarray]] = {}
        moving: list[PathName] = []
        for path, episode in self.state.episodes.items():
            ahead = self._ahead.get(FAST[path].view) if FAST[path].start == "task" else None
            if episode.steps == 0 and ahead is not None:
                found[path] = {job.id: ahead.energies(job.id) for job in jobs}
            else:
                moving.append(path)
        if moving:
            energies_NC = self._policy.read(
                [self.state.episodes[path] for path in moving],
                [prompts[job.id].of(FAST[path].view) for path in moving for job in jobs],
                [place for place in range(len(moving)) for _ in jobs],
            )
            for place, path in enumerate(moving):
                rows_NC = energies_NC[place * len(jobs) : (place + 1) * len(jobs)]
                found[path] = {job.id: row_C for job, row_C in zip(jobs, rows_NC, strict=True)}
        return found

    def _trusted(self, trust: Trust, pair_KC: np.ndarray, label: int, era: int) -> Trust:
        """Trust after a label, from the two predictions that it weighs; without any as it was."""
        if not len(pair_KC):
            return trust
        first, second = half_brier(pair_KC, np.full(2, label))
        return trust.learn(float(first), float(second), era, self._params.controller)

    def _expert_reads(self, job: Job, chances: dict[PathName, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of the experts, and the pair that HEDGE5 weighs; puts the mixtures among `chances`."""
        nothing = np.zeros((0, len(INDEX)))
        if not self._hedges:
            return nothing, nothing
        experts_EC = self.state.experts.predict(job)
        hedge4_C = self.state.hedge4.mix(experts_EC)
        if "hedge4" in self.paths:
            chances["hedge4"] = hedge4_C
        if "hedge5" not in self.paths:
            return experts_EC, nothing
        joined_KC = np.stack([chances["controller"], hedge4_C])
        chances["hedge5"] = self.state.policy_trust.mix(*joined_KC)
        return experts_EC, joined_KC


def label_of(job: Job) -> Label:
    """The label of a job that has completed; the only place where a session looks at one."""
    return job.label  # type: ignore[return-value]
