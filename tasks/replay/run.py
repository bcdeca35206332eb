"""A whole replay: the pooled training history once, then each repository's audit in a session of its own."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.checkpoint import Checkpoints, load_checkpoint, save_checkpoint
from tasks.errors import BadPayload
from tasks.larc import Episode, SlowState, begin, decode_session, encode_session
from tasks.progress import Progress, silent
from tasks.replay.calibration import energies_of, fit_biases
from tasks.replay.cases import CaseMemory
from tasks.replay.controller import Trust
from tasks.replay.experts import INDEX, Experts
from tasks.replay.fit import empty_memories
from tasks.replay.hedge import Hedge
from tasks.replay.jobs import Job
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.paths import FAST
from tasks.replay.policy import Policy, ReadAhead
from tasks.replay.prompts import View, causal_prompts
from tasks.replay.queue import Event, events, merged
from tasks.replay.record import StageRecord
from tasks.replay.score import nested_weights
from tasks.replay.session import Replayer, State
from tasks.replay.session_file import session_of, state_of
from tasks.replay.split import Split

_HISTORY: tuple[PathName, ...] = ("original", "hedge4")
"""Paths that go through the training labels by their own means of learning."""
_AHEAD: dict[View, tuple[PathName, ...]] = {
    "plain": ("reset", "keep"),
    "memory": (
        "reset_memory",
        "keep_memory",
        "permuted",
        "carry_tenth",
        "latest_full",
        "latest_tenth",
        "controller",
    ),
}
"""Paths that read at the slow state of the task fit, at least before their first update."""


@dataclass(frozen=True)
class Replayed:
    """The audit's records by repository, that of the training history, and what calibration found there."""

    history: StageRecord
    audits: dict[str, StageRecord]
    biases_C: np.ndarray | None
    seconds: float
    """Of this run alone; a resumed one counts from where it went on."""
    resumed: bool


@dataclass
class _Stage:
    """One session from its first event to its last."""

    name: str
    jobs: tuple[Job, ...]
    paths: tuple[PathName, ...]
    happening: list[Event] = field(init=False)
    record: StageRecord = field(init=False)

    def __post_init__(self) -> None:
        self.happening = merged(events(self.jobs))
        self.record = StageRecord(self.jobs, self.paths)


class Replay:
    """A replay of one split by one policy, from the slow states before and after the task fit."""

    def __init__(
        self,
        policy: Policy,
        params: ReplayParams,
        split: Split,
        *,
        host: str,
        original: SlowState,
        task: SlowState,
    ) -> None:
        """`host` is the version of the policy's host."""
        self._host = host
        self._policy = policy
        self._params = params
        self._slow: dict[str, SlowState] = {"original": original, "task": task}
        history = tuple(path for path in _HISTORY if path in params.paths or _needed(path, params.paths))
        self._stages = [_Stage("history", tuple(split.pooled), history)]
        self._stages += [
            _Stage(f"audit {place}", jobs, params.paths) for place, jobs in enumerate(split.audit.values())
        ]
        self._repositories = list(split.audit)
        self._split = split

    def run(self, *, progress: Progress = silent, checkpoints: Checkpoints | None = None) -> Replayed:
        """Go through all events; `progress` counts them.

        With `checkpoints` an interrupted replay continues after the last event that was saved, and ends with
        the same bytes.
        """
        began = time.monotonic()
        saved = load_checkpoint(checkpoints.folder, checkpoints.fingerprint) if checkpoints else None
        keeper = _Keeper(self._stages, self._host, checkpoints, progress)
        at, tensors = keeper.resume(saved)
        biases_C: np.ndarray | None = None
        known: State | None = None
        for place, stage in enumerate(self._stages):
            if place < at:
                if place == 0:
                    known = self._restored(stage, tensors, "history")
            else:
                state = (
                    self._restored(stage, tensors, "session")
                    if place == at and tensors
                    else self._begun(place, known)
                )
                self._through(stage, state, biases_C, place, known, keeper)
                known = state if place == 0 else known
            if place == 0:
                biases_C = self._biases(stage.record)
        audits = {
            name: stage.record for name, stage in zip(self._repositories, self._stages[1:], strict=True)
        }
        return Replayed(self._stages[0].record, audits, biases_C, time.monotonic() - began, bool(tensors))

    def _through(
        self,
        stage: _Stage,
        state: State,
        biases_C: np.ndarray | None,
        place: int,
        known: State | None,
        keeper: "_Keeper",
    ) -> None:
        ahead = self._ahead(stage, known) if place else {}
        session = Replayer(self._policy, self._params, stage.paths, state, ahead=ahead, biases_C=biases_C)
        controlled = "controller" in stage.paths
        while state.cursor < len(stage.happening):
            event = stage.happening[state.cursor]
            if event.kind == "predict":
                trust = state.trust.share if controlled else float("nan")
                stage.record.predicted(session.predict(event), trust)
            else:
                stage.record.learned(state.cursor, session.learn(event))
            state.cursor += 1
            keeper.went_on(place, state, known)

    def _begun(self, place: int, known: State | None) -> State:
        """The state before a stage's first event; an audit starts from what the history left."""
        params, stage = self._params, self._stages[place]
        seed = [params.permutation_seed, place]
        episodes: dict[PathName, Episode] = {
            path: begin(
                self._slow[spec.start], seed=int(np.random.default_rng([*seed, number]).integers(2**63))
            )
            for number, (path, spec) in enumerate(FAST.items())
            if path in stage.paths
        }
        if known is None:
            return State(
                episodes,
                empty_memories(stage.jobs, params),
                Experts(params.experts),
                Hedge([0.0] * 4),
                Trust.new(params.controller),
                Trust.new(params.controller),
            )
        if "original" in episodes:
            episodes["original"] = _forked(known.episodes["original"], episodes["original"])
        [repository] = {job.repository for job in stage.jobs}
        return State(
            episodes,
            {repository: self._memory(known, repository)},
            Experts.from_record(known.experts.record(), params.experts),
            Hedge(known.hedge4.losses_E),
            Trust.new(params.controller),
            Trust.new(params.controller),
        )

    def _memory(self, known: State, repository: str) -> CaseMemory:
        cases = known.memories[repository].cases if repository in known.memories else ()
        return CaseMemory(self._params.cases.cases, self._params.cases.case_bytes, cases)

    def _ahead(self, stage: _Stage, known: State | None) -> dict[View, ReadAhead]:
        """Reads at the task-fitted state of all of a stage's jobs, for the views that its paths need."""
        assert known is not None
        [repository] = {job.repository for job in stage.jobs}
        memories = {repository: self._memory(known, repository)}
        prompts = causal_prompts(stage.happening, memories, self._params.cases)
        episode = begin(self._slow["task"], seed=0)
        return {
            view: ReadAhead(self._policy, episode, {job: one.of(view) for job, one in prompts.items()})
            for view, paths in _AHEAD.items()
            if any(path in stage.paths for path in paths)
        }

    def _biases(self, history: StageRecord) -> np.ndarray | None:
        """The calibrated control's biases, from what the original policy predicted in the history."""
        if "calibrated" not in self._params.paths:
            return None
        energies_NC = energies_of(history.chances_NPC[:, history.paths.index("original")])
        labels_N = np.array([INDEX[job.label] for job in history.jobs])
        weights_N = nested_weights(history.jobs)
        return fit_biases(energies_NC, labels_N, weights_N, l2=self._params.experts.bias_l2)

    def _restored(self, stage: _Stage, tensors: dict[str, Tensor], prefix: str) -> State:
        if prefix not in tensors:
            raise BadPayload("the checkpoint lacks its session; start the replay again")
        payload = tensors[prefix].to(torch.uint8).numpy().tobytes()
        session = decode_session(payload, host=self._host, width=self._policy.learner.host.width)
        return state_of(session, self._params, stage.paths, self._slow)


class _Keeper:
    """Counts events, and saves where a replay is: its session, what the history left, and all records."""

    def __init__(
        self, stages: Sequence[_Stage], host: str, checkpoints: Checkpoints | None, progress: Progress
    ) -> None:
        self._stages = stages
        self._host = host
        self._checkpoints = checkpoints
        self._progress = progress
        self._total = sum(len(stage.happening) for stage in stages)
        self._saved = time.monotonic()

    def resume(self, saved: tuple[dict[str, Tensor], dict[str, Any]] | None) -> tuple[int, dict[str, Tensor]]:
        """The stage to go on with, and what was saved; the records of the stages until then are restored."""
        if saved is None:
            return 0, {}
        tensors, record = saved
        at = int(record["stage"])
        if not 0 <= at < len(self._stages):
            raise BadPayload("the checkpoint is of no stage of this replay; start the replay again")
        for stage in self._stages[: at + 1]:
            stage.record.restore(stage.name, tensors)
        return at, tensors

    def went_on(self, place: int, state: State, known: State | None) -> None:
        """One event more is done in a stage; save where enough time has passed, then report."""
        checkpoints = self._checkpoints
        if checkpoints is not None and time.monotonic() - self._saved >= checkpoints.seconds:
            self._save(checkpoints, place, state, known)
            self._saved = time.monotonic()
        before = sum(len(stage.happening) for stage in self._stages[:place])
        self._progress(before + state.cursor, self._total)

    def _save(self, checkpoints: Checkpoints, place: int, state: State, known: State | None) -> None:
        tensors: dict[str, Tensor] = {}
        for prefix, one in (("session", state), ("history", known)):
            if one is not None:
                payload = bytearray(encode_session(session_of(one, self._host)))
                tensors[prefix] = torch.frombuffer(payload, dtype=torch.uint8)
        for stage in self._stages[: place + 1]:
            tensors.update(stage.record.tensors(stage.name))
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, {"stage": place})


def _needed(path: PathName, paths: Sequence[PathName]) -> bool:
    return path == "hedge4" and "hedge5" in paths


def _forked(known: Episode, fresh: Episode) -> Episode:
    """The factors of the history's episode with the stream of a new one."""
    return Episode(known.bound, known.A_rD.clone(), known.B_Dr.clone(), fresh.stream, known.steps)
