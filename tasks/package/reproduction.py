"""Comparing an evaluation made again with the one that a package holds: losses, sample by sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.evaluation import Sample


@dataclass(frozen=True)
class ConditionLoss:
    """Mean loss of a condition in nats per target token: as packaged, and as found again.

    `largest` is the largest difference of one task's loss, `differing` the number of tasks whose row is not
    equal in every column.
    """

    expected: float
    found: float
    largest: float
    tasks: int
    differing: int


@dataclass(frozen=True)
class Reproduction:
    """What a package gave when it was scored again.

    `identical` tells whether every row of samples is equal, to the last bit of its loss.
    """

    snapshot: str
    source: str
    core: str
    tasks: int
    elements: int
    conditions: Mapping[str, ConditionLoss]
    identical: bool
    seconds: float

    @property
    def largest(self) -> float:
        """The largest difference between a task's losses, in nats per target token."""
        return max(loss.largest for loss in self.conditions.values())


def compare(expected: Sequence[Sample], found: Sequence[Sample]) -> dict[str, ConditionLoss] | None:
    """Losses by condition in the order of `found`; None where the two are not about the same tasks."""
    keys = [[(sample.condition, sample.task) for sample in samples] for samples in (expected, found)]
    if keys[0] != keys[1] or not keys[0]:
        return None
    pairs: dict[str, list[tuple[Sample, Sample]]] = {}
    for was, now in zip(expected, found, strict=True):
        pairs.setdefault(now.condition, []).append((was, now))
    return {
        condition: ConditionLoss(
            expected=sum(was.nll for was, _ in rows) / len(rows),
            found=sum(now.nll for _, now in rows) / len(rows),
            largest=max(_apart(was.nll, now.nll) for was, now in rows),
            tasks=len(rows),
            differing=sum(was != now for was, now in rows),
        )
        for condition, rows in pairs.items()
    }


def _apart(was: float, now: float) -> float:
    """The difference; infinite where a loss is no number, which compares with nothing."""
    return 0.0 if was == now else abs(was - now) if was == was and now == now else float("inf")
