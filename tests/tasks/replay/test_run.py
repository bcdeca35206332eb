"""A whole replay on the tiny host: it resumes with the same bytes at every event, and never looks ahead."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.checkpoint import Checkpoints, checkpoint_path, load_checkpoint, save_checkpoint
from tasks.errors import BadPayload, SessionFull
from tasks.larc import LIVE_BYTES, SlowState, decode_session, encode_session
from tasks.replay.calibration import softmax
from tasks.replay.jobs import BadJobs, Job
from tasks.replay.params import ALL_PATHS, ReplayParams
from tasks.replay.policy import Policy
from tasks.replay.queue import events, merged
from tasks.replay.run import Replay, Replayed
from tasks.replay.split import split_jobs
from tests.tasks.replay.conftest import SECOND, job, jobs, small

HOST = "a" * 64
PARAMS = small(training_jobs=8, audit_jobs=10)


class Killed(BaseException):
    """What a kill looks like from inside."""


def replay(
    policy: Policy, original: SlowState, task: SlowState, made: list[Job], params: ReplayParams = PARAMS
) -> Replay:
    split = split_jobs(made, params.training_jobs, params.audit_jobs)
    return Replay(policy, params, split, host=HOST, original=original, task=task)


def bits(replayed: Replayed) -> list[bytes]:
    found = []
    for record in (replayed.history, *replayed.audits.values()):
        found += [tensor.numpy().tobytes() for tensor in record.tensors("x").values()]
    return found


def test_a_replay_killed_at_any_event_ends_with_the_same_bytes(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path
) -> None:
    made = jobs(30, seed=1, repositories=2)
    reported: list[int] = []
    whole = replay(policy, original, task, made).run(progress=lambda done, total, **_: reported.append(done))
    assert reported == list(range(1, reported[-1] + 1))

    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    for event in range(1, reported[-1] + 1):

        def progress(done: int, total: int, event: int = event, **_: float) -> None:
            assert done == event
            raise Killed

        with pytest.raises(Killed):
            replay(policy, original, task, made).run(progress=progress, checkpoints=checkpoints)
    assert bits(replay(policy, original, task, made).run(checkpoints=checkpoints)) == bits(whole)


def test_paths_named_in_any_order_resume_with_the_same_bytes(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path
) -> None:
    params = small(training_jobs=8, audit_jobs=10, paths=["controller", "keep_memory", "permuted", "keep"])
    made = jobs(24, seed=1)
    whole = replay(policy, original, task, made, params).run()

    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    for event in range(1, 17, 5):

        def progress(done: int, total: int, event: int = event, **_: float) -> None:
            if done >= event:
                raise Killed

        with pytest.raises(Killed):
            replay(policy, original, task, made, params).run(progress=progress, checkpoints=checkpoints)
    assert bits(replay(policy, original, task, made, params).run(checkpoints=checkpoints)) == bits(whole)


def test_every_path_predicts_every_job_and_the_paths_differ(
    policy: Policy, original: SlowState, task: SlowState
) -> None:
    found = replay(policy, original, task, jobs(24, seed=2)).run()
    [record] = found.audits.values()
    assert record.chances_NPC.shape == (10, len(ALL_PATHS), 4)
    assert np.allclose(record.chances_NPC.sum(-1), 1)
    last = {path: record.chances_NPC[-1, place].tobytes() for place, path in enumerate(record.paths)}
    assert len(set(last.values())) == len(ALL_PATHS)
    assert np.array_equal(
        record.chances_NPC[0, record.paths.index("reset_memory")],
        record.chances_NPC[0, record.paths.index("keep_memory")],
    )  # before the first label, keep is where reset is
    assert found.biases_C is not None
    base, shifted = (record.chances_NPC[:, record.paths.index(path)] for path in ("original", "calibrated"))
    assert np.allclose(softmax(np.log(base) + found.biases_C), shifted)


def test_no_prediction_of_any_path_depends_on_a_later_label(
    policy: Policy, original: SlowState, task: SlowState
) -> None:
    made = jobs(24, seed=3)
    audit = split_jobs(made, 8, 10).audit["octo/repo0"]
    [before] = replay(policy, original, task, made).run().audits.values()
    for number in range(0, len(audit), 3):
        changed = audit[number]
        other = replace(changed, label="other" if changed.label != "other" else "failure")
        again = [other if one is changed else one for one in made]
        [after] = replay(policy, original, task, again).run().audits.values()
        same = np.array([(before.chances_NPC[n] == after.chances_NPC[n]).all() for n in range(len(audit))])
        early = np.array([one.started_us <= changed.completed_us for one in audit])
        assert same[early].all()
        if not early.all():
            assert not same[~early].all()  # and later ones do learn from it


def test_paths_stand_alone(policy: Policy, original: SlowState, task: SlowState) -> None:
    made = jobs(24, seed=4)
    [whole] = replay(policy, original, task, made).run().audits.values()
    for paths in (["reset"], ["keep"], ["hedge4"], ["controller", "hedge5"], ["original", "calibrated"]):
        params = small(training_jobs=8, audit_jobs=10, paths=paths)
        [part] = replay(policy, original, task, made, params).run().audits.values()
        for place, path in enumerate(part.paths):
            expected = whole.chances_NPC[:, whole.paths.index(path)]
            assert np.allclose(part.chances_NPC[:, place], expected, atol=1e-5), path


def test_a_controller_without_trust_predicts_as_reset_does(
    policy: Policy, original: SlowState, task: SlowState
) -> None:
    params = small(
        training_jobs=8,
        audit_jobs=10,
        paths=["reset_memory", "controller"],
        controller={"prior": 1e-12, "drop_below": 0.0, "trust_rate": 1e-6},
    )
    [found] = replay(policy, original, task, jobs(24, seed=5), params).run().audits.values()
    assert np.allclose(found.chances_NPC[:, 0], found.chances_NPC[:, 1], atol=1e-9)


def test_a_state_that_does_harm_is_dropped_and_the_updates_say_so(
    policy: Policy, original: SlowState, task: SlowState
) -> None:
    params = small(
        training_jobs=8,
        audit_jobs=30,
        paths=["controller"],
        controller={"rate": 5.0, "step_norm": 5.0, "radius": 20.0, "trust_rate": 50.0, "drop_below": 0.049},
    )
    [found] = replay(policy, original, task, jobs(60, seed=6), params).run().audits.values()
    decisions = [one.update.decision for one in found.updates]
    assert "reset" in decisions
    assert [one.update.distance for one in found.updates if one.update.decision == "reset"] == [
        0.0 for one in decisions if one == "reset"
    ]


def test_a_checkpoint_of_another_replay_is_refused(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path
) -> None:
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    replay(policy, original, task, jobs(24, seed=7)).run(checkpoints=checkpoints)
    small_one = small(training_jobs=4, audit_jobs=3)
    with pytest.raises(BadPayload):
        replay(policy, original, task, jobs(24, seed=7), small_one).run(checkpoints=checkpoints)


@pytest.mark.parametrize(
    "damage",
    [
        {"episodes": {}},
        {"records": {}},
        {"memory": [["octo/repo0", [{}]]]},
        {"memory": [1]},
        {"pending": [{"job": "1"}]},
        {
            "pending": [
                {
                    "job": "1",
                    "plain": "",
                    "memory": "",
                    "chances": [],
                    "experts": [],
                    "reads": [],
                    "joined": [],
                    "era": 0,
                }
            ]
        },
    ],
)
def test_a_damaged_session_is_refused_in_one_sentence(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path, damage: dict[str, object]
) -> None:
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    made = jobs(24, seed=8)
    replay(policy, original, task, made).run(checkpoints=checkpoints)
    saved = load_checkpoint(tmp_path, "f" * 64)
    assert saved is not None
    tensors, record = saved
    session = decode_session(tensors["session"].numpy().tobytes(), host=HOST, width=32)
    payload = encode_session(replace(session, **damage))  # type: ignore[arg-type]
    tensors["session"] = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
    save_checkpoint(tmp_path, "f" * 64, tensors, record)
    with pytest.raises(BadPayload, match="session"):
        replay(policy, original, task, made).run(checkpoints=checkpoints)


def test_factors_bound_to_another_slow_state_are_refused(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path
) -> None:
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    made = jobs(24, seed=8)
    replay(policy, original, task, made).run(checkpoints=checkpoints)
    other = replace(task, A_rD=task.A_rD + 1)
    with pytest.raises(BadPayload, match="bound to another slow state"):
        replay(policy, original, other, made).run(checkpoints=checkpoints)


def test_more_pending_jobs_than_a_session_may_hold_are_refused(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.larc.session.PENDING_BYTES", 1000)
    made = [job(n, started_us=10**15 + n, completed_us=10**15 + n) for n in range(12)]
    made += [job(50 + n, started_us=10**15 + (60 + n) * SECOND, completed_us=2 * 10**15) for n in range(12)]
    with pytest.raises(SessionFull, match="pending predictions take"):
        replay(policy, original, task, made).run(checkpoints=Checkpoints(tmp_path, "f" * 64, seconds=0))


def test_a_split_is_in_time_order_and_leaves_out_labels_that_came_too_late() -> None:
    made = [job(n, started_us=n * SECOND + 10**15, completed_us=10**15 + (n + 1) * SECOND) for n in range(10)]
    made[2] = replace(made[2], completed_us=10**15 + 99 * SECOND)
    split = split_jobs(made, 5, 3)
    # Job 4 completes when the audit begins, at which moment predictions come first.
    assert [one.id for one in split.training["octo/repo"]] == ["0", "1", "3"]
    assert [one.id for one in split.audit["octo/repo"]] == ["5", "6", "7"]
    assert split.unfinished == 2
    assert len(split_jobs(made, 99, 99).training["octo/repo"]) == 3  # at most half of the jobs
    with pytest.raises(BadJobs, match="no training job"):
        split_jobs(made[:1], 5, 3)


def test_successive_predictions_are_read_together() -> None:
    made = jobs(30, seed=1)
    assert len(merged(events(made))) < len(events(made))


def test_a_checkpoint_holds_the_session_within_its_bounds(
    policy: Policy, original: SlowState, task: SlowState, tmp_path: Path
) -> None:
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    replay(policy, original, task, jobs(24, seed=8)).run(checkpoints=checkpoints)
    assert checkpoint_path(tmp_path, "f" * 64).stat().st_size < 2 * LIVE_BYTES
    shutil.rmtree(tmp_path)
