"""Looks at a whole store as steps of flows: verification piece by piece, and what collection would remove."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from prefect.artifacts import create_table_artifact

from flows import watch
from flows.engine import bind
from flows.formatting import counted
from flows.kept_cursor import KeptCursor
from flows.place import open_store
from flows.settings import Settings
from store.backend import open_backend
from store.errors import IntegrityError
from store.gc import Summary, collect
from store.verify import verify

_FINDINGS, _COLLECTION = "verify-findings", "gc-dry-run"
"""Keys of the tables that show up with the run."""


def _verify(settings: Settings, sample: float, seed: int, max_seconds: float | None) -> dict[str, Any]:
    backend = open_backend(settings.store)
    kept = KeptCursor.of(settings.work_dir, backend)
    begun = kept.load()
    if begun is not None and (begun.sample, begun.seed) != (sample, seed):
        begun = None  # that was another pass
    try:
        with watch.progress("verify", "objects") as progress:
            report = verify(
                backend,
                full=sample == 1.0,
                sample=sample,
                seed=seed,
                resume=begun,
                max_seconds=max_seconds,
                keep=kept.keep,
                progress=progress,
            )
    except BaseException:
        kept.write()
        raise
    kept.finish(report)
    return report.to_dict()


def _collect(settings: Settings, grace: timedelta, retain: timedelta) -> list[dict[str, Any]]:
    with watch.progress("gc", "objects") as progress:
        summary = collect(open_store(settings), grace=grace, retain=retain, progress=progress)
    return list(_amounts(summary))


_verify_task = bind(_verify, name="verify packs")
_collect_task = bind(_collect, name="look for garbage")


def verify_packs(settings: Settings, sample: float, seed: int, max_seconds: float | None) -> dict[str, Any]:
    """One piece of a pass over the store; the last piece completes it.

    Raises:
        IntegrityError: something is damaged; a table with every finding goes with the run.
    """
    report = _verify_task(settings, sample, seed, max_seconds)
    findings = report["findings"]
    if findings:
        table = [{"key": found["key"], "problem": found["problem"]} for found in findings]
        create_table_artifact(
            key=_FINDINGS, table=table, description=f"{counted(len(findings), 'finding')} in {settings.store}"
        )
        first = findings[0]
        raise IntegrityError(
            f"{counted(len(findings), 'finding')} in {settings.store}, the first: {first['key']}: "
            f"{first['problem']}; `cellar verify` lists them, `--repair` helps where a copy exists"
        )
    names = ("objects", "commits", "elements", "snapshots", "packs_chosen", "packs_read", "packs_before")
    return {**{name: report[name] for name in names}, "complete": report["complete"]}


def dry_run(settings: Settings, grace: timedelta, retain: timedelta) -> dict[str, Any]:
    """What garbage collection would do now, as a table that goes with the run."""
    rows = _collect_task(settings, grace, retain)
    create_table_artifact(
        key=_COLLECTION, table=rows, description=f"What `cellar gc --apply` would do in {settings.store}"
    )
    return {"amounts": rows}


def _amounts(summary: Summary) -> Iterator[dict[str, Any]]:
    values = summary.to_dict()
    for name in ("kept", "condemned", "waiting", "queued", "rescued", "collected", "finished", "leftovers"):
        amount = values[name]
        if name == "kept" or any(amount.values()):
            yield {"what": name, **amount}
