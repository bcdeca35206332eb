"""What a stage of a replay leaves: every prediction, and every update of every path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.errors import BadPayload
from tasks.replay.experts import CLASSES
from tasks.replay.jobs import Job
from tasks.replay.learning import PathUpdate
from tasks.replay.params import PathName

DECISIONS = ("kept", "shrunk", "dropped", "reset")
_FIGURES = 8


@dataclass(frozen=True)
class Learned:
    """One update of one path, and which event it was."""

    event: int
    update: PathUpdate


class StageRecord:
    """Predictions of a stage's jobs, in the order of their starts, and its updates in the order of events."""

    def __init__(self, jobs: Sequence[Job], paths: Sequence[PathName]) -> None:
        self.jobs = tuple(jobs)
        self.paths = tuple(paths)
        self.chances_NPC = np.full((len(jobs), len(paths), CLASSES), np.nan)
        """float64; NaN where a job has not been predicted."""
        self.trust_N = np.full(len(jobs), np.nan)
        """float64 trust in the controller's kept state when the job was predicted; NaN without controller."""
        self._place = {job.id: place for place, job in enumerate(jobs)}
        self._updates: list[tuple[float, float, float, float, float, float, float, float, float]] = []

    def predicted(self, chances: Mapping[str, np.ndarray], trust: float) -> None:
        """Note the predictions of jobs by id, and the controller's trust at the time."""
        for job, chances_PC in chances.items():
            self.chances_NPC[self._place[job]] = chances_PC
            self.trust_N[self._place[job]] = trust

    def learned(self, event: int, updates: Sequence[PathUpdate]) -> None:
        """Note what the paths made of a batch."""
        for one in updates:
            figures = (one.before, one.after, one.gradient_norm, one.update_norm, one.distance)
            place, decision = self.paths.index(one.path), DECISIONS.index(one.decision)
            self._updates.append((event, place, one.jobs, *figures, decision))

    @property
    def updates(self) -> list[Learned]:
        """All updates in order."""
        return [
            Learned(
                int(event),
                PathUpdate(
                    self.paths[int(path)], int(jobs), before, after, by, step, far, DECISIONS[int(decision)]
                ),
            )
            for event, path, jobs, before, after, by, step, far, decision in self._updates
        ]

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """For a checkpoint."""
        updates = np.array(self._updates, np.float64).reshape(-1, _FIGURES + 1)
        return {
            f"{prefix}.chances": torch.from_numpy(self.chances_NPC.copy()),
            f"{prefix}.trust": torch.from_numpy(self.trust_N.copy()),
            f"{prefix}.updates": torch.from_numpy(updates),
        }

    def restore(self, prefix: str, tensors: Mapping[str, Tensor]) -> None:
        """Take what `tensors` gave; raises `BadPayload` when it is of another stage."""
        try:
            chances, trust = tensors[f"{prefix}.chances"].numpy(), tensors[f"{prefix}.trust"].numpy()
            updates = tensors[f"{prefix}.updates"].numpy()
        except KeyError as error:
            raise BadPayload(f"the checkpoint lacks {error}; start the replay again") from error
        if chances.shape != self.chances_NPC.shape or trust.shape != self.trust_N.shape:
            raise BadPayload("the checkpoint is of another replay; start it again")
        self.chances_NPC, self.trust_N = chances.copy(), trust.copy()
        rows = updates.reshape(-1, _FIGURES + 1).tolist()
        self._updates = [tuple(row) for row in rows]
