"""One batch of arrived labels: every path that learns takes its step, all of them in one physical batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tasks.larc import Episode, RightCandidate, reset, stack
from tasks.replay.controller import Step, controlled_step, distance, norm
from tasks.replay.experts import CLASSES
from tasks.replay.params import PathName, ReplayParams
from tasks.replay.paths import FAST, FastPath
from tasks.replay.policy import Policy, labels_tensor
from tasks.replay.prompts import Prompts


@dataclass(frozen=True)
class Arrival:
    """A label that arrived, with the prompts saved when its job was predicted."""

    prompts: Prompts
    label: int


@dataclass(frozen=True)
class PathUpdate:
    """What one batch did to one path; losses are the batch's mean cross-entropy in nats."""

    path: PathName
    jobs: int
    before: float
    """At the factors that the gradient was taken at: the path's own, or of LATEST the slow ones."""
    after: float
    """At the factors that the path has now; NaN where it was not measured."""
    gradient_norm: float
    update_norm: float
    distance: float
    """Of the path's factors from its slow state."""
    decision: str
    """kept, shrunk, dropped or reset; of other paths than the controller always kept."""


def learn_batch(
    policy: Policy,
    episodes: Mapping[PathName, Episode],
    arrivals: Sequence[Arrival],
    params: ReplayParams,
    *,
    measure: bool = True,
) -> tuple[dict[PathName, Episode], list[PathUpdate]]:
    """The episodes after one functional SGD step each on the mean cross-entropy of its arrived jobs.

    Losses of paths are summed and never averaged with each other. Paths that read the same prompts at the
    same factors, which are the LATEST ones, share their gradient. `measure` reads the batch again afterwards;
    the controller always does.
    """
    if not episodes or not arrivals:
        return dict(episodes), []
    rows = _Rows.of(policy, episodes, arrivals)
    found = rows.gradients()
    stepped: dict[PathName, Episode] = {}
    steps: dict[PathName, Step] = {}
    for path, episode in episodes.items():
        spec = FAST[path]
        gradient_rD, gradient_Dr, before = found[path]
        if spec.controlled:

            def again(tried: Episode, path: PathName = path) -> float:
                return rows.losses({path: tried})[path]

            steps[path] = controlled_step(episode, gradient_rD, gradient_Dr, before, again, params.controller)
            stepped[path] = steps[path].episode
        else:
            rate = params.rate * (params.tenth if spec.tenth else 1)
            base = episode if spec.carries else reset(episode)
            stepped[path] = replace(
                episode,
                A_rD=base.A_rD - rate * gradient_rD,
                B_Dr=base.B_Dr - rate * gradient_Dr,
                steps=episode.steps + 1,
            )
    read = {path: episode for path, episode in stepped.items() if path not in steps} if measure else {}
    after = {**rows.losses(read), **{path: step.after for path, step in steps.items()}}
    updates = [
        PathUpdate(
            path=path,
            jobs=len(arrivals),
            before=found[path][2],
            after=after.get(path, float("nan")),
            gradient_norm=norm(*found[path][:2]),
            update_norm=norm(stepped[path].A_rD - episode.A_rD, stepped[path].B_Dr - episode.B_Dr),
            distance=distance(stepped[path]),
            decision=steps[path].decision if path in steps else "kept",
        )
        for path, episode in episodes.items()
    ]
    return stepped, updates


@dataclass(frozen=True)
class _Rows:
    """The arrived jobs as each path sees them."""

    policy: Policy
    episodes: Mapping[PathName, Episode]
    arrivals: Sequence[Arrival]
    labels: Mapping[PathName, list[int]]

    @classmethod
    def of(cls, policy: Policy, episodes: Mapping[PathName, Episode], arrivals: Sequence[Arrival]) -> "_Rows":
        labels = {
            path: [_target(arrival.label, FAST[path], episode.stream) for arrival in arrivals]
            for path, episode in episodes.items()
        }
        return cls(policy, episodes, arrivals, labels)

    def gradients(self) -> dict[PathName, tuple[Tensor, Tensor, float]]:
        """Each path's gradient for A and B, and its mean loss, where its step starts."""
        owner_of: dict[PathName, int] = {}
        owners: list[Episode] = []
        rows: list[tuple[int, PathName]] = []
        latest: int | None = None
        for path, episode in self.episodes.items():
            if not FAST[path].carries and latest is not None:
                owner_of[path] = latest
                continue
            owner_of[path] = len(owners)
            rows.append((len(owners), path))
            owners.append(episode if FAST[path].carries else reset(episode))
            if not FAST[path].carries:
                latest = owner_of[path]
        learner = self.policy.learner
        A_FrD, B_FDr = (factors.to(learner.host.device) for factors in stack(owners))
        count = len(self.arrivals)
        labels = [label for _, path in rows for label in self.labels[path]]
        _, [made] = learner.gradients(
            [self.policy.question(prompt) for _, path in rows for prompt in self._prompts(path)],
            A_FrD,
            B_FDr,
            [owner for owner, _ in rows for _ in range(count)],
            [RightCandidate(labels_tensor(labels))],
            torch.full((len(labels),), 1 / count),
        )
        losses_Fn = made.losses_N.cpu().double().view(len(rows), count).mean(-1)
        by_A, by_B = made.A_FrD.cpu(), made.B_FDr.cpu()
        return {path: (by_A[o], by_B[o], float(losses_Fn[o])) for path, o in owner_of.items()}

    def losses(self, episodes: Mapping[PathName, Episode]) -> dict[PathName, float]:
        """Each path's mean loss of the batch at the factors of these episodes."""
        if not episodes:
            return {}
        count = len(self.arrivals)
        energies_NJ = self.policy.read(
            list(episodes.values()),
            [prompt for path in episodes for prompt in self._prompts(path)],
            [place for place in range(len(episodes)) for _ in range(count)],
        )
        labels = labels_tensor([label for path in episodes for label in self.labels[path]])
        losses_N = torch.nn.functional.cross_entropy(torch.from_numpy(energies_NJ), labels, reduction="none")
        return dict(zip(episodes, losses_N.view(-1, count).mean(-1).tolist(), strict=True))

    def _prompts(self, path: PathName) -> list[str]:
        return [arrival.prompts.of(FAST[path].view) for arrival in self.arrivals]


def _target(label: int, path: FastPath, stream: np.random.Generator) -> int:
    """The label to learn; of a permuted path through the inverse of a fresh permutation for each job."""
    if not path.permuted:
        return label
    return int(np.argsort(stream.permutation(CLASSES))[label])
