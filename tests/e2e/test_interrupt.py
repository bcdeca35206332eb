"""A stage that is broken off leaves nothing half-visible, and the next run ends as an undisturbed one."""

import os
import shlex
import signal
import subprocess

import pytest

from flows.pins import Stage
from tasks.checkpoint import load_checkpoint
from tests.e2e.workplace import (
    PROGRAM,
    REMEMBERED,
    TOKENIZED,
    TRAINED,
    Workplace,
    ended,
    servers_of,
    wait_for,
)

pytestmark = pytest.mark.slow


def press_ctrl_c(workplace: Workplace, process: subprocess.Popen[str]) -> None:
    """Interrupt the process group, as a terminal does, and check how the command ends."""
    os.killpg(process.pid, signal.SIGINT)
    end = ended(process)

    assert end.code == 130, end
    said = [line for line in end.err.splitlines() if line.startswith("cellar: ")]
    command = shlex.join(["cellar", *process.args[len(PROGRAM) :]])  # type: ignore[index]
    assert said == [
        f"cellar: interrupted; the store is consistent, and `{command}` continues from what is "
        "published and what it kept"
    ]
    assert end.err.endswith(said[0] + "\n")
    assert "Traceback" not in end.err
    assert servers_of(workplace) == []


@pytest.mark.parametrize(
    ("stage", "commits"),
    [("codec", TOKENIZED), pytest.param("core", REMEMBERED, marks=pytest.mark.nightly)],
)
def test_an_interrupted_training_continues_to_the_same_version(
    finished: Workplace, copy: Workplace, with_server: dict[str, str], stage: Stage, commits: int
) -> None:
    copy.rewind(commits)

    process = copy.start(stage, "train", CELLAR_CHECKPOINT_S="0", **with_server)
    wait_for(lambda: list(copy.work.glob("*.checkpoint")), process)
    press_ctrl_c(copy, process)

    [kept] = copy.work.glob("*.checkpoint")
    state = load_checkpoint(copy.work, kept.name.partition(".")[0])
    assert state is not None
    assert state[1]["finished"] > 0
    assert len(copy.commits) == commits
    assert copy.store.verify(full=True).ok

    again = copy.cellar(stage, "train", "--quiet", **with_server)

    assert (again.code, again.err) == (0, "")
    assert copy.pin(stage) == finished.pin(stage)
    assert list(copy.work.glob("*.checkpoint")) == []


@pytest.mark.parametrize(
    ("how", "runner", "rerun"),
    [
        pytest.param(signal.SIGKILL, "threads", "threads", marks=pytest.mark.nightly, id="kill -9"),
        pytest.param(signal.SIGINT, "processes", "threads", id="Ctrl-C with worker processes"),
        pytest.param(
            signal.SIGINT, "processes", "processes", marks=pytest.mark.nightly, id="both in processes"
        ),
    ],
)
def test_a_broken_off_build_continues_with_the_units_that_it_lacks(
    finished: Workplace,
    copy: Workplace,
    with_server: dict[str, str],
    how: signal.Signals,
    runner: str,
    rerun: str,
) -> None:
    copy.rewind(TRAINED)

    process = copy.start("memory", "build", CELLAR_RUNNER=runner, CELLAR_WORKERS="1")
    wait_for(lambda: len(copy.parts()) > 1, process)
    if how == signal.SIGINT:
        press_ctrl_c(copy, process)
    else:
        process.kill()
        assert ended(process).code == -signal.SIGKILL

    kept = {part: part.stat().st_ino for part in copy.parts()}
    assert len(copy.commits) == TRAINED
    assert copy.store.catalog().rows("memory") == []
    assert copy.store.verify(full=True).ok

    spread = {} if rerun == "threads" else {"CELLAR_RUNNER": rerun, "CELLAR_WORKERS": "2"}
    again = copy.cellar("memory", "build", "--quiet", **spread, **with_server)

    assert (again.code, again.err) == (0, "")
    assert copy.pin("memory") == finished.pin("memory")
    assert {part: part.stat().st_ino for part in kept} == kept  # a unit done again would be another file
    assert 1 < len(kept) < len(copy.parts()) == len(finished.parts())
    assert copy.store.verify(full=True).ok
    assert servers_of(copy) == []


def test_an_interrupted_build_in_threads_publishes_nothing(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    copy.rewind(TRAINED)

    process = copy.start("memory", "build", **with_server)
    wait_for(copy.parts, process)
    press_ctrl_c(copy, process)

    assert len(copy.commits) == TRAINED
    assert copy.store.verify(full=True).ok


def test_a_killed_evaluation_goes_on_with_the_samples_that_it_kept(
    finished: Workplace, copy: Workplace, with_server: dict[str, str]
) -> None:
    before = len(copy.commits) - 1  # all but the evaluation's
    copy.rewind(before)

    process = copy.start("eval", "run", CELLAR_CHECKPOINT_S="0", **with_server)
    wait_for(lambda: list(copy.work.glob("*.checkpoint")), process)
    process.kill()
    assert ended(process).code == -signal.SIGKILL

    [kept] = copy.work.glob("*.checkpoint")
    assert load_checkpoint(copy.work, kept.name.partition(".")[0]) is not None
    assert len(copy.commits) == before

    again = copy.cellar("eval", "run", "--quiet", **with_server)

    assert (again.code, again.err) == (0, "")
    assert copy.pin("evaluation") == finished.pin("evaluation")
    assert list(copy.work.glob("*.checkpoint")) == []


@pytest.mark.nightly
def test_an_interrupted_evaluation_publishes_nothing(copy: Workplace, with_server: dict[str, str]) -> None:
    before = [commit.id for commit in copy.commits]
    many = ["--set", "evaluation.batch_tasks=1", "--set", "evaluation.per_document=100"]

    process = copy.start("eval", "run", *many, "--set", "evaluation.quote_tasks=1000", **with_server)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("evaluate attachments:")
    press_ctrl_c(copy, process)

    assert [commit.id for commit in copy.commits] == before
    assert copy.store.verify(full=True).ok
    assert not list((copy.folder / "results").iterdir())
