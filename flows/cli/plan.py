"""The command that says what a flow would do, and writes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from flows.cli.demo import demo_settings
from flows.cli.evidence import open_snapshot
from flows.cli.launch import Flag, Injected, ParamsFile, Set

if TYPE_CHECKING:
    from flows.params import Params
    from flows.plan import Step
    from flows.settings import Settings
    from store import Store

Several = Parameter(negative="", consume_multiple=False)
What = Literal[
    "demo",
    "update",
    "corpus",
    "tokenizer",
    "codec",
    "memory",
    "indexes",
    "snapshot",
    "core",
    "evaluation",
    "larc-train",
    "larc-eval",
    "larc-replay",
    "anneal-write",
    "anneal-consolidate",
    "anneal-eval",
    "anneal-cumulate",
    "anneal-facts",
    "anneal-compose",
]
_ON_TEXT = ("anneal-write", "anneal-consolidate", "anneal-eval")


def plan(
    flow: What = "demo",
    /,
    *names: str,
    head: str | None = None,
    partition: Annotated[list[str] | None, Several] = None,
    drop_partition: Annotated[list[str] | None, Several] = None,
    skip_missing: Annotated[bool, Flag] = False,
    shards: str | None = None,
    jobs: Path | None = None,
    start: str | None = None,
    source: Path | None = None,
    name: str | None = None,
    snapshot: str | None = None,
    out: Path = Path("build/demo"),
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Show which steps of a flow are done, which would run and why, and about what that would take.

    Nothing is written and nothing started. Seconds are from earlier runs with the same CELLAR_WORK_DIR, bytes
    from what lies in the store; what nobody knows is said to be unknown.

    Parameters
    ----------
    flow
        `demo`, the whole chain; one of its stages, with those before it; `update`, which brings a head up to
        date; or a command on a host, such as `larc-eval` for `cellar larc eval`.
    names
        The shadows of anneal-compose.
    head
        The head to update; otherwise the one with the name of the corpus.
    partition
        Update only this partition; as for `cellar update`.
    drop_partition
        Leave out everything that this partition holds.
    skip_missing
        Pass over partitions that have no file.
    shards
        Update only the documents of these worker shards, as in 1,3..9.
    jobs
        The CI jobs of larc-replay.
    start
        The slow state that larc-replay starts from.
    source
        The text of anneal-write, anneal-consolidate and anneal-eval.
    name
        Names the shadows of these three.
    snapshot
        The snapshot of anneal-compose: its id, a tag or a head; otherwise the one that was pinned last.
    out
        The output folder of the demo that is meant: its store, where CELLAR_STORE and --store name none.
    """
    from flows.errors import UsageError
    from flows.params import load_params, with_text

    chosen = load_params(params, with_text(set_ or (), source, name))
    given = {"--head": head, "--partition": partition, "--drop-partition": drop_partition, "--shards": shards}
    stray = [name for name, value in given.items() if value]
    if flow != "update" and stray:
        raise UsageError(f"{stray[0]} is an option of an update: cellar plan update {stray[0]} ...")
    if flow != "larc-replay" and (jobs or start):
        raise UsageError("--jobs and --start are options of a replay: cellar plan larc-replay --jobs FILE")
    if flow not in _ON_TEXT and (source or name):
        raise UsageError("--source and --name are of a shadow: cellar plan anneal-eval --source FILE")
    if flow != "anneal-compose" and (names or snapshot):
        raise UsageError("names and --snapshot are of a composition: cellar plan anneal-compose NAME...")
    if flow == "anneal-compose" and not names:
        raise UsageError("which shadows? For example: cellar plan anneal-compose domain --snapshot head:docs")
    from flows.plan import plan_chain, plan_composition, plan_lines, plan_update, until

    if flow.startswith(("larc-", "anneal-")):
        settings = session.settings
        if flow == "anneal-compose":
            steps = plan_composition(
                session.open_store(), chosen, settings, names, open_snapshot(session, snapshot)
            )
        else:
            steps = _on_host(flow, session.open_store(), chosen, settings, jobs, start)
        session.emit(_record(flow, settings, (), steps), [f"store {settings.store}", *plan_lines(steps)])
        return
    settings = demo_settings(session, out) if flow == "demo" else session.settings
    store = _store(settings)
    missing: tuple[str, ...] = ()
    with session.progress("read source", "documents") as progress:
        if flow == "update":
            from flows.updating.partitions import moment
            from flows.updating.scope import Scope

            scope = Scope.of(
                chosen,
                partitions=partition or (),
                dropped=drop_partition or (),
                shards=shards,
                skip_missing=skip_missing,
                at=moment(None),
            )
            missing = scope.missing
            moved = head or chosen.corpus.name
            steps = plan_update(store, chosen, settings, moved, scope, progress)
        else:
            steps = plan_chain(store, chosen, settings, progress)
            steps = steps if flow == "demo" else until(steps, flow)
    place = f"store {settings.store}" + ("" if store is not None else ", which is not there yet")
    without = [f"without a file: {', '.join(missing)}"] if missing else []
    session.emit(_record(flow, settings, missing, steps), [place, *without, *plan_lines(steps)])


def _on_host(
    flow: str, store: "Store", params: "Params", settings: "Settings", jobs: Path | None, start: str | None
) -> "list[Step]":
    """The plan of a flow on a host; the store must be there, since the host is in it."""
    from flows.errors import UsageError
    from flows.plan import plan_cumulation, plan_facts, plan_replay, plan_shadow, plan_study

    if flow == "larc-replay":
        if jobs is None:
            raise UsageError("which jobs? For example: cellar plan larc-replay --jobs jobs.csv")
        return plan_replay(store, params, settings, jobs, start)
    if flow == "anneal-cumulate":
        return plan_cumulation(store, params, settings)
    if flow == "anneal-facts":
        return plan_facts(store, params, settings)
    method, _, until = flow.partition("-")
    if method == "anneal":
        return plan_shadow(store, params, settings, until=until)
    steps = plan_study(store, params, settings)
    return steps[:1] if until == "train" else steps


def _record(flow: str, settings: "Settings", missing: Sequence[str], steps: "list[Step]") -> dict[str, Any]:
    return {
        "flow": flow,
        "store": settings.store,
        "missing": list(missing),
        "steps": [step.to_dict() for step in steps],
    }


def _store(settings: "Settings") -> "Store | None":
    """The store, None where none was made yet: then there is nothing that is done."""
    from store import Store
    from store.errors import NotAStore

    try:
        return Store.open(settings.store, cache=settings.store_cache())
    except NotAStore:
        return None
