"""The policy of a replay: prompts become questions with four labels to choose from, read by a learner."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from tasks.larc import Episode, Learner, Question, read
from tasks.replay.prompts import CONTINUATIONS

CHUNK = 64
"""Jobs whose reads at a fixed state are made ahead of their turn, in one physical batch."""


class Policy:
    """A learner with what its host makes of text: `encode` gives token ids, `end` is end-of-sequence."""

    def __init__(self, learner: Learner, encode: Callable[[str], Sequence[int]], end: int) -> None:
        self.learner = learner
        self._encode = encode
        self._candidates = tuple((*encode(text), end) for text in CONTINUATIONS)

    def question(self, prompt: str) -> Question:
        """The question behind a prompt: one of four labels and the end of the sequence."""
        return Question(tuple(self._encode(prompt)), self._candidates)

    def read(
        self, episodes: Sequence[Episode], prompts: Sequence[str], owners_N: Sequence[int]
    ) -> np.ndarray:
        """Energies (N, 4) float64 of prompts, each read with the factors of its episode; no gradient."""
        questions = [self.question(prompt) for prompt in prompts]
        energies_NC: np.ndarray = read(self.learner, episodes, questions, owners_N).cpu().double().numpy()
        return energies_NC


class ReadAhead:
    """Reads at a state that never changes, made a chunk of jobs at a time.

    A chunk is read when its first job asks, and always as the same batch, so that a resumed replay finds the
    same bits.
    """

    def __init__(self, policy: Policy, episode: Episode, prompts: Mapping[str, str]) -> None:
        """`prompts` are the jobs' by id, in the order of their starts."""
        self._policy = policy
        self._episode = episode
        self._ids = list(prompts)
        self._prompts = prompts
        self._place = {job: place for place, job in enumerate(self._ids)}
        self._chunks: dict[int, np.ndarray] = {}

    def energies(self, job: str) -> np.ndarray:
        """Energies (4,) float64 of a job's prompt."""
        chunk, row = divmod(self._place[job], CHUNK)
        if chunk not in self._chunks:
            ids = self._ids[chunk * CHUNK : (chunk + 1) * CHUNK]
            prompts = [self._prompts[one] for one in ids]
            self._chunks[chunk] = self._policy.read([self._episode], prompts, [0] * len(ids))
        energies_C: np.ndarray = self._chunks[chunk][row]
        return energies_C


def labels_tensor(labels: Sequence[int]) -> torch.Tensor:
    """Indices of labels as int64."""
    return torch.tensor(labels, dtype=torch.int64)
