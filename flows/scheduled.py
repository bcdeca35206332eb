"""The flows that a schedule starts: JSON parameters in, files and settings read where the run happens.

Those on a frozen language model are in `flows.scheduled_hosts`. Each is thin: it reads `Params` from a file
and overrides and `Settings` from the worker's environment, and calls the flow that does the work, whose run
then shows what was read.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from flows.demo import demo
from flows.engine import flow
from flows.evaluate_snapshot import evaluate_snapshot
from flows.maintenance import dry_run, verify_packs
from flows.params import Params, load_params
from flows.place import open_store
from flows.promoting.evaluations import unevaluated
from flows.runs.listing import failures
from flows.serving.deployments import known_zone
from flows.serving.scheduling import scheduled_for, start_all
from flows.serving.served import follow_server
from flows.settings import Settings, load_settings
from flows.update_memories import update_memories
from store.errors import CellarError

Share = Annotated[float, Field(gt=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Zone = Annotated[str, AfterValidator(known_zone)]


def configuration(params_file: str | None, overrides: list[str] | None) -> tuple[Params, Settings]:
    """What a run computes and where, read where it happens; the run ends with the server that started it."""
    follow_server()
    params = load_params(Path(params_file) if params_file else None, overrides or ())
    return params, load_settings(quiet=True)


def _update(
    head: str | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
    partitions: list[str] | None = None,
    drop_partitions: list[str] | None = None,
    skip_missing: bool = False,
    timezone: Zone = "UTC",
    at: str | None = None,
    wait_minutes: Amount = 0.0,
    then: list[str] | None = None,
) -> dict[str, Any]:
    """Bring a head up to date with its source; a head that is new starts with the chain up to the snapshot.

    Args:
        head: the head to move, by default the one with the name of the corpus.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `corpus.path=notes`.
        partitions: names, dates and ranges, or `today` and `yesterday`.
        drop_partitions: partitions to leave out from now on.
        skip_missing: pass over partitions that have no file.
        timezone: whose days `today` and `yesterday` are.
        at: the moment that these are seen from, by default the one that the run was scheduled for.
        wait_minutes: how long to wait for another run on the same head.
        then: deployments to start once the head has moved.
    """
    params, settings = configuration(params_file, overrides)
    result = update_memories(
        params,
        settings,
        head or params.corpus.name,
        partitions=partitions,
        drop_partitions=drop_partitions,
        skip_missing=skip_missing,
        wait_s=60 * wait_minutes,
        at=at or scheduled_for(timezone),
    )
    return {**result, "then": start_all(then or ()) if result["moved"] else {}}


def _build(params_file: str | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """The whole chain, from documents to an evaluated snapshot: what a store needs before it can be updated.

    Args:
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `codec.steps=800`.
    """
    params, settings = configuration(params_file, overrides)
    return {**demo(params, settings)}


def _evaluate_new(
    heads: list[str] | None = None,
    params_file: str | None = None,
    overrides: list[str] | None = None,
    limit: Annotated[int, Field(ge=1)] = 5,
) -> dict[str, Any]:
    """Evaluate snapshots that a head points or pointed to and that nobody evaluated, newest first.

    Those whose evaluation failed before come after those that were not tried as often.

    Args:
        heads: heads to look at, by default all of them.
        params_file: a parameter file, by default params.yaml where there is one.
        overrides: parameters that win, such as `evaluation.resamples=500`.
        limit: how many snapshots one run evaluates at most; the next run takes more.
    """
    params, settings = configuration(params_file, overrides)
    waiting = unevaluated(open_store(settings), params.evaluation.name, heads)
    tried = failures(evaluate_snapshot.name, "snapshot")
    waiting.sort(key=lambda snapshot: tried[snapshot])
    done: list[str] = []
    failed: list[CellarError] = []
    for snapshot in waiting[:limit]:
        try:
            done.append(evaluate_snapshot(params, settings, snapshot)["snapshot"])
        except CellarError as error:  # the others can be evaluated all the same
            failed.append(error)
    if failed:
        raise failed[0]
    return {"snapshot": done[0] if done else None, "evaluated": done, "waiting": len(waiting) - len(done)}


def _verify(sample: Share = 1.0, seed: int = 0, max_seconds: Amount | None = None) -> dict[str, Any]:
    """Check the structure of the store and read packs, going on where the last run stopped.

    A finding fails the run.

    Args:
        sample: the share of packs that one pass reads.
        seed: which packs are in the sample.
        max_seconds: how long one run reads packs; the next one goes on.
    """
    follow_server()
    return verify_packs(load_settings(quiet=True), sample, seed, max_seconds)


def _gc(grace_days: Amount = 7.0, retain_days: Amount = 30.0) -> dict[str, Any]:
    """Say what garbage collection would remove; nothing is changed.

    Args:
        grace_days: days between condemning and removing.
        retain_days: days for which everything that was published or pinned is kept.
    """
    follow_server()
    return dry_run(load_settings(quiet=True), timedelta(days=grace_days), timedelta(days=retain_days))


update = flow(_update, name="update")
build = flow(_build, name="build")
evaluate_new = flow(_evaluate_new, name="evaluate-new")
verify = flow(_verify, name="verify")
gc = flow(_gc, name="gc")
