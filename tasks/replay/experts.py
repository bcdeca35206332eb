"""HEDGE4's experts: a workflow prior, two last-label maps and a hashed regression (LARC 5; METHODS 2.3).

All give (4,) float64 probabilities in the order of `LABELS`, and learn one arrived label at a time.
"""

import hashlib
import itertools
import re
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from tasks.errors import BadPayload
from tasks.replay.jobs import LABELS, Job
from tasks.replay.params import ExpertParams

CLASSES = len(LABELS)
INDEX: dict[str, int] = {label: place for place, label in enumerate(LABELS)}
_WORD = re.compile(r"\w+")


class KeyedMap:
    """A map of at most `most` keys: the one that was learned longest ago is forgotten first (ours)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Any:
        """The value of a key, None where it is unknown."""
        return self._values.get(_text(key))

    def put(self, key: Hashable, value: Any) -> None:
        """Learn a value."""
        name = _text(key)
        self._values.pop(name, None)
        self._values[name] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]

    def record(self) -> list[list[Any]]:
        """Keys and values, longest ago first."""
        return [[key, value] for key, value in self._values.items()]

    def restore(self, record: Any) -> None:
        """Take what `record` gave."""
        self._values = {str(key): value for key, value in record}


class Experts:
    """The four experts of one session; what they know of a key is bounded."""

    names = ("prior", "last of job", "last of commit", "regression")

    def __init__(self, params: ExpertParams) -> None:
        self._params = params
        self._counts = KeyedMap(params.most_keys)
        self._by_job = KeyedMap(params.most_keys)
        self._by_commit = KeyedMap(params.most_keys)
        self.weights_KC = np.zeros((params.buckets, CLASSES))

    def predict(self, job: Job) -> np.ndarray:
        """Probabilities (4 experts, 4 labels) float64."""
        prior = self._prior(job)
        by_job = _last(self._by_job.get(_job_key(job)), self._params.last_job, prior)
        by_commit = _last(self._by_commit.get(_commit_key(job)), self._params.last_commit, prior)
        return np.stack([prior, by_job, by_commit, self._regression(self._features(job))])

    def learn(self, job: Job) -> None:
        """Learn the label of a completed job."""
        label = INDEX[job.label]
        counts = list(self._counts.get(_workflow_key(job)) or [0] * CLASSES)
        counts[label] += 1
        self._counts.put(_workflow_key(job), counts)
        self._by_job.put(_job_key(job), label)
        self._by_commit.put(_commit_key(job), label)
        features = self._features(job)
        error_C = self._regression(features)
        error_C[label] -= 1
        self.weights_KC *= 1 - self._params.rate * self._params.decay
        self.weights_KC[features] -= self._params.rate * error_C

    def record(self) -> dict[str, Any]:
        """What they have learned, for a session file; the regression's weights by bucket where not zero."""
        rows = np.flatnonzero(self.weights_KC.any(1))
        return {
            "counts": self._counts.record(),
            "by_job": self._by_job.record(),
            "by_commit": self._by_commit.record(),
            "regression": [[int(row), *self.weights_KC[row].tolist()] for row in rows],
        }

    @classmethod
    def from_record(cls, record: Any, params: ExpertParams) -> "Experts":
        """The experts behind a record; raises `BadPayload` when it is none."""
        made = cls(params)
        try:
            made._counts.restore(record["counts"])
            made._by_job.restore(record["by_job"])
            made._by_commit.restore(record["by_commit"])
            for row, *values in record["regression"]:
                made.weights_KC[row] = values
            maps = (made._counts, made._by_job, made._by_commit)
            fits = all(len(one) <= params.most_keys for one in maps) and np.isfinite(made.weights_KC).all()
            counts = all(len(value) == CLASSES and min(value) >= 0 for _, value in made._counts.record())
            labels = all(value in range(CLASSES) for one in maps[1:] for _, value in one.record())
        except (LookupError, TypeError, ValueError) as error:
            raise BadPayload(
                f"the session's experts are damaged ({error}); start the replay again"
            ) from error
        if not (fits and counts and labels):
            raise BadPayload("the session's experts are not these parameters'; start the replay again")
        return made

    def _prior(self, job: Job) -> np.ndarray:
        counts_C = np.array(self._counts.get(_workflow_key(job)) or [0] * CLASSES, np.float64)
        prior_C: np.ndarray = (counts_C + 1) / (counts_C.sum() + CLASSES)
        return prior_C

    def _regression(self, features: np.ndarray) -> np.ndarray:
        scores_C = self.weights_KC[features].sum(0)
        raised_C: np.ndarray = np.exp(scores_C - scores_C.max())
        raised_C /= raised_C.sum()
        return raised_C

    def _features(self, job: Job) -> np.ndarray:
        """Buckets of a job's unigrams and bigrams, each once, in ascending order: int64."""
        grams = {_bucket(gram, self._params.buckets) for gram in _grams(job)}
        return np.array(sorted(grams), np.int64)


def _grams(job: Job) -> Iterator[str]:
    """Words of the fields and pairs of neighbours; the commit is one word; "" stands for every job."""
    yield ""
    text = f"{job.repository} {job.workflow_key} {job.event} {job.name}".lower()
    words = [*_WORD.findall(text), f"commit:{job.commit}"]
    yield from words
    yield from (f"{first} {second}" for first, second in itertools.pairwise(words))


def _bucket(gram: str, buckets: int) -> int:
    return int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "little") % buckets


def _last(label: int | None, chance: float, prior_C: np.ndarray) -> np.ndarray:
    if label is None:
        return prior_C
    found_C = np.full(CLASSES, (1 - chance) / (CLASSES - 1))
    found_C[label] = chance
    return found_C


def _workflow_key(job: Job) -> Hashable:
    return (job.repository, job.workflow_key)


def _job_key(job: Job) -> Hashable:
    return (job.repository, job.workflow_key, job.name)


def _commit_key(job: Job) -> Hashable:
    return (job.repository, job.commit, job.workflow_key, job.name)


def _text(key: Any) -> str:
    """Keys as short text: fields may be long, and a session file is bounded."""
    return hashlib.blake2b("\x00".join(key).encode(), digest_size=12).hexdigest()
