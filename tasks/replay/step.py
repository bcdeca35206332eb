"""The replay room's door to the store: jobs, the task-fitted slow state, and the replay as an evaluation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store import Element, Ref, Store
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, discard, find_trained, publish_trained
from tasks.errors import BadPayload
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.hosts import Host
from tasks.larc import (
    LarcParams,
    Learner,
    LoraLearner,
    SlowState,
    new_slow_state,
    open_residual,
    residual_element,
)
from tasks.progress import Progress, silent
from tasks.replay.fit import fit_slow_state, training_set
from tasks.replay.jobs import LABELS, Job, JobList
from tasks.replay.params import ReplayParams
from tasks.replay.policy import Policy
from tasks.replay.readers import read_jobs
from tasks.replay.recipes import fit_recipe, jobs_recipe, replay_recipe, start_recipe
from tasks.replay.run import Replay
from tasks.replay.samples import ReplaySample, UpdateSample, replay_samples, update_samples
from tasks.replay.session_file import check_room
from tasks.replay.split import split_jobs
from tasks.replay.summary import summarise
from tasks.tables import encode_records, load_records

SUBJECT: SubjectName = "replay"
SAMPLES_RECIPE, UPDATES_RECIPE = "replay.samples/1", "replay.updates/1"
TABLE_MEDIA = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Bench:
    """A host and how it is corrected."""

    host: Host
    larc: LarcParams

    @property
    def ref(self) -> Ref:
        """The host's."""
        return self.host.ref

    @property
    def dtype(self) -> str:
        """float32 or bfloat16: the same events end elsewhere in other numbers."""
        return str(self.host.dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Inputs:
    """What a replay is made from."""

    jobs: Ref
    start: Ref
    """The slow state before the task fit, which is the path `original`."""
    task: Ref


def publish_jobs(store: Store, params: ReplayParams, path: Path) -> Ref:
    """Publish the jobs of a file or folder as `corpus/<name>.jobs`, or find them published.

    Raises `BadJobs` as the readers do.
    """
    recipe = jobs_recipe(params, path)
    if (row := store.catalog().find(recipe.fingerprint)) is not None:
        return row.ref
    listed = read_jobs(path, params)
    element = Element(
        "corpus",
        f"{params.name}.jobs",
        encode_records(Job, listed.jobs),
        media=TABLE_MEDIA,
        provenance={"recipe": recipe.fingerprint, "params": recipe.params},
        facts={"jobs": len(listed.jobs), "rows": listed.rows, "excluded": dict(listed.excluded)},
    )
    return store.publish([element], message=f"Publish {len(listed.jobs):,} CI jobs as {params.name}.jobs")[0]


def load_jobs(store: Store, ref: Ref) -> JobList:
    """The jobs behind a reference; raises `BadPayload` when it is no list of jobs."""
    row = store.catalog().get(ref.version)
    jobs = load_records(store.read(ref), Job, what="a list of CI jobs")
    if any(job.label not in LABELS or job.completed_us < job.started_us for job in jobs):
        raise BadPayload(f"{ref} holds a job with no such label or a negative length; publish the jobs again")
    facts: dict[str, Any] = {} if row is None else dict(row.facts)
    excluded, rows = facts.get("excluded", {}), facts.get("rows", len(jobs))
    counted = [rows, *excluded.values()] if isinstance(excluded, dict) else [None]
    if not all(type(count) is int and count >= 0 for count in counted):
        raise BadPayload(f"{ref} does not say how many rows it was read from; publish the jobs again")
    return JobList(tuple(jobs), dict(excluded), rows)


def start_state(store: Store, params: ReplayParams, bench: Bench, name: str | None = None) -> Ref:
    """The slow state that a replay starts from: the newest `residual/<name>`, else an untrained one.

    Raises `ElementNotFound` when the store has none of that name.
    """
    if name is not None:
        return open_residual(store, name, host=bench.ref, width=bench.host.width)[0]
    larc, seed = bench.larc, params.fit.seed
    recipe = start_recipe(larc, seed, bench.ref)
    if (row := store.catalog().find(recipe.fingerprint)) is not None:
        return row.ref
    slow = new_slow_state(
        bench.host.width, seed=seed, rank=larc.rank, deviation=larc.deviation, insertion=larc.insertion
    )
    provenance = {"recipe": recipe.fingerprint, "params": recipe.params}
    element = residual_element(f"{params.name}.start", slow, host=bench.ref, provenance=provenance)
    return store.publish([element], message=f"Publish an untrained slow state of {bench.ref.name}")[0]


def fit_task(
    store: Store,
    params: ReplayParams,
    bench: Bench,
    *,
    jobs: Ref,
    start: Ref,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish the slow state fitted to the training prefix as `residual/<name>.task`, or find it.

    With `work_dir` an interrupted fit continues, bit for bit, from what it kept every `checkpoint_s` seconds.
    Raises `SessionFull` where the paths of the replay that follows would not fit into a live session.
    """
    recipe = fit_recipe(params, bench.larc, [jobs, bench.ref, start], bench.dtype)
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    if (found := find_trained(store, recipe.fingerprint, checkpoints)) is not None:
        return found
    host = bench.host
    _, slow = open_residual(store, start, host=host.ref, width=host.width)
    check_room(params.paths, slow)
    split = split_jobs(load_jobs(store, jobs).jobs, params.training_jobs, params.audit_jobs)
    fitted, losses = fit_slow_state(
        policy_of(bench, slow),
        slow,
        training_set(split.pooled, params),
        params,
        progress=progress,
        checkpoints=checkpoints,
    )
    tail = losses[-(len(losses) // 10 or 1) :]
    element = residual_element(
        f"{params.name}.task",
        fitted,
        host=host.ref,
        provenance={"recipe": recipe.fingerprint, "jobs": str(jobs), "start": str(start)},
        facts={"training_jobs": len(split.pooled), "last_loss": sum(tail) / max(len(tail), 1)},
    )
    message = f"Publish a slow state fitted to {len(split.pooled):,} CI jobs"
    return publish_trained(store, element, checkpoints, message=message)


def replay(
    store: Store,
    params: ReplayParams,
    bench: Bench,
    inputs: Inputs,
    *,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Replay the audit by all paths; publish `evaluation/<name>` with samples and updates, or find it.

    `progress` counts events. With `work_dir` an interrupted replay goes on after the last event that it kept,
    and ends with the same bytes.
    """
    elements = [inputs.jobs, bench.ref, inputs.start, inputs.task]
    recipe = replay_recipe(params, bench.larc, elements, bench.dtype).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_evaluation(store, recipe)) is not None:
        discard(checkpoints)
        return found
    host = bench.host
    listed = load_jobs(store, inputs.jobs)
    split = split_jobs(listed.jobs, params.training_jobs, params.audit_jobs)
    _, original = open_residual(store, inputs.start, host=host.ref, width=host.width)
    _, task = open_residual(store, inputs.task, host=host.ref, width=host.width)
    check_room(params.paths, task)
    replayed = Replay(
        policy_of(bench, task), params, split, host=host.ref.version, original=original, task=task
    ).run(progress=progress, checkpoints=checkpoints)
    samples = [sample for record in replayed.audits.values() for sample in replay_samples(record)]
    updates = [sample for name, record in replayed.audits.items() for sample in update_samples(name, record)]
    summary = summarise(listed, split, replayed, params)
    summary["settings"] = params.model_dump(mode="json")
    summary["elements"] = [str(ref) for ref in elements]
    published = publish_evaluation(
        store,
        params.name,
        summary,
        {
            "samples": Table(encode_records(ReplaySample, samples), len(samples), SAMPLES_RECIPE),
            "updates": Table(encode_records(UpdateSample, updates), len(updates), UPDATES_RECIPE),
        },
        recipe=recipe,
        requires=[ref.version for ref in elements],
        provenance={"subject": SUBJECT, "host": str(host.ref)},
        costs={"seconds": replayed.seconds, "resumed": replayed.resumed},
        message=f"Replay {len(split.audit):,} repositories by {len(params.paths)} paths as {params.name}",
    )
    discard(checkpoints)
    return published


def policy_of(bench: Bench, slow: SlowState) -> Policy:
    """The policy that reads a host's labels with corrections where this slow state has them."""
    host, larc = bench.host, bench.larc
    tokens, checkpointing = larc.tokens, larc.checkpointing
    if slow.module:
        learner: Learner = LoraLearner(
            host, slow.insertion, module=slow.module, tokens=tokens, checkpointing=checkpointing
        )
    else:
        learner = Learner(host, slow.insertion, tokens=tokens, checkpointing=checkpointing)
    return Policy(learner, host.encode, host.end)


def load_replay_samples(payload: bytes) -> list[ReplaySample]:
    """The samples of a replay; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, ReplaySample, what="a table of replay samples")


def load_update_samples(payload: bytes) -> list[UpdateSample]:
    """The updates of a replay; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, UpdateSample, what="a table of replay updates")
