"""An interrupted evaluation goes on with the samples that it kept, and ends with the same ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.checkpoint import Checkpoints, checkpoint_path, load_checkpoint, save_checkpoint
from tasks.evaluation import AttachmentTask, Condition, Sample, encode_samples
from tasks.evaluation.kept import in_batches

SIZE = 2
PLAN = {Condition.NONE: [None] * 5, Condition.RIGHT: [0.1, 0.2, 0.3, 0.4, 0.5]}
BATCHES = 6


def task(number: int) -> AttachmentTask:
    return AttachmentTask(f"memory/a/quote/{number}", "quote", "memory/a", number, np.zeros(2), np.zeros(1))


TASKS = [task(number) for number in range(5)]


class Scorer:
    """Scores batches by their numbers alone, and counts them; the one after `most` is interrupted."""

    def __init__(self, most: int = BATCHES) -> None:
        self.most = most
        self.asked: list[tuple[str, int]] = []

    def __call__(
        self, condition: Condition, tasks: Sequence[AttachmentTask], shown: Sequence[float | None], first: int
    ) -> list[Sample]:
        if len(self.asked) == self.most:
            raise KeyboardInterrupt
        self.asked.append((condition.value, first))
        return [
            Sample(
                task=one.name,
                kind=one.kind,
                condition=condition.value,
                family=condition.family.value,
                element=one.element,
                evidence="",
                evidence_start=0,
                weight=float(np.float32(value or 0)),
                attached=0,
                nll=float(np.random.default_rng([first, row, len(condition.value)]).normal()),
                target_tokens=1,
                right_tokens=0,
                exact=False,
                bytes_read=0,
                cue="\N{SNOWMAN}",
                target="",
                written="",
            )
            for row, (one, value) in enumerate(zip(tasks, shown, strict=True))
        ]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path, "f" * 64, 0.0)


UNDISTURBED, _ = in_batches(Scorer(), TASKS, PLAN, SIZE)


@pytest.mark.parametrize("scored", range(BATCHES))
def test_what_was_scored_before_an_interruption_is_not_scored_again(
    checkpoints: Checkpoints, scored: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        in_batches(Scorer(scored), TASKS, PLAN, SIZE, checkpoints=checkpoints)
    second, seen = Scorer(), []

    samples, seconds = in_batches(
        second,
        TASKS,
        PLAN,
        SIZE,
        progress=lambda done, total: seen.append((done, total)),
        checkpoints=checkpoints,
    )

    assert len(second.asked) == BATCHES - scored
    assert samples == UNDISTURBED
    assert encode_samples(samples) == encode_samples(UNDISTURBED)
    assert seconds.keys() == {"none", "right"}
    assert all(value > 0 for value in seconds.values())
    assert seen[-1] == (10, 10)


def test_a_run_that_was_killed_after_its_last_batch_scores_nothing(checkpoints: Checkpoints) -> None:
    in_batches(Scorer(), TASKS, PLAN, SIZE, checkpoints=checkpoints)
    again = Scorer(0)
    assert in_batches(again, TASKS, PLAN, SIZE, checkpoints=checkpoints)[0] == UNDISTURBED


@pytest.mark.parametrize("damage", ["tasks", "boundary", "bytes", "shape", "record", "file"])
def test_what_is_kept_of_something_else_is_scored_anew(checkpoints: Checkpoints, damage: str) -> None:
    in_batches(Scorer(), TASKS, PLAN, SIZE, checkpoints=checkpoints)
    folder, fingerprint = checkpoints.folder, checkpoints.fingerprint
    kept = load_checkpoint(folder, fingerprint)
    assert kept is not None
    tensors, record = kept
    samples = tensors["samples"]
    if damage == "tasks":
        other, _ = in_batches(Scorer(), [task(number) for number in range(5, 10)], PLAN, SIZE)
        samples = torch.frombuffer(bytearray(encode_samples(other)), dtype=torch.uint8)
    elif damage == "boundary":
        samples = torch.frombuffer(bytearray(encode_samples(UNDISTURBED[:3])), dtype=torch.uint8)
    elif damage == "bytes":
        samples = samples[: len(samples) // 2]
    elif damage == "shape":
        samples = samples.float()
    elif damage == "record":
        record = {"seconds": [1, 2]}
    save_checkpoint(folder, fingerprint, {"samples": samples}, record)
    if damage == "file":
        checkpoint_path(folder, fingerprint).write_bytes(b"nothing")
    again = Scorer()

    assert in_batches(again, TASKS, PLAN, SIZE, checkpoints=checkpoints)[0] == UNDISTURBED
    assert len(again.asked) == BATCHES
