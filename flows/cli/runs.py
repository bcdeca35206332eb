"""Commands on runs of flows: how they went, what they were given, what they published, and starting one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from cyclopts.validators import Number

from flows.cli.launch import Flag, Injected
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.runs.details import Details
    from flows.runs.listing import Run
    from store import Commit

app = App(name="runs", help="Runs of flows: scheduled ones, and those of commands.")
_HEAD = ("run", "started", "flow", "state", "duration", "snapshot", "reason")
_DIGITS, _SNAPSHOT_DIGITS = 8, 12
_REASON, _ROWS = 100, 10
"""Characters of a reason in a list, and rows of a table that are shown."""
_States = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
_Values = Annotated[list[str] | None, Parameter(name="--set", negative="", consume_multiple=False)]


@app.default
def ls(
    *,
    state: _States = None,
    flow: str | None = None,
    since: timedelta | None = None,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], validator=Number(gte=0))] = 20,
    parts: Annotated[bool, Flag] = False,
    session: Injected,
) -> None:
    """List runs, newest first.

    Parameters
    ----------
    state
        Only runs that are e.g. failed, crashed, running or scheduled; may be repeated.
    flow
        Only runs of this flow or deployment.
    since
        Only runs of this time, such as 7d or 36h.
    limit
        Show this many; 0 shows all.
    parts
        Also the runs that are part of another.
    """
    with known_api(session) as known:
        from flows.runs.listing import list_runs

        found = (
            list_runs(states=state or (), flow=flow, since=since, limit=limit, parts=parts) if known else []
        )
    session.emit([run.to_dict() for run in found], columns([_row(run) for run in found], _HEAD) or ["no run"])


@app.command
def show(run: str, /, *, session: Injected) -> None:
    """Show a run: its parameters as they were resolved, tasks, tables, and what it published.

    Parameters
    ----------
    run
        The run's id, or the first digits of it.
    """
    from flows.errors import RunNotFound
    from flows.runs.details import commits_of, details_of
    from flows.runs.listing import find_run
    from store import Store
    from store.errors import CellarError

    with known_api(session) as known:
        if not known:
            raise RunNotFound(f"nothing ran yet in {session.settings.work_dir}; `cellar runs` lists runs")
        found = details_of(find_run(run))
    url = (found.settings or {}).get("store", session.settings.store)
    try:
        commits = commits_of(found, Store.open(url).log())
    except CellarError as error:
        session.warn(f"the commits of the run are not known: {error}")
        commits = []
    values = {**found.to_dict(), "store": url, "commits": [_commit(commit) for commit in commits]}
    session.emit(values, list(_lines(found, url, commits)))


@app.command
def start(deployment: str, /, *, set_: _Values = None, session: Injected) -> None:
    """Start a run of a deployment now, by whoever serves it.

    Parameters
    ----------
    deployment
        Its name in the file of deployments.
    set_
        A parameter of the run, e.g. --set limit=3; a value is JSON where it can be. May be repeated.
    """
    from flows.errors import PrefectServerError
    from flows.serving.api import configured_url, prefect_api
    from flows.serving.lock import serving
    from flows.serving.registration import start_run

    parameters = dict(_assignment(text) for text in set_ or ())
    home = session.settings.work_dir / "prefect"
    if configured_url() is None and serving(home) is None:
        raise PrefectServerError("nobody would run it: start `cellar serve` first, or set PREFECT_API_URL")
    with prefect_api(home):
        identity = start_run(deployment, parameters)
    session.emit({"run": identity}, [f"run {identity}; `cellar runs show {identity[:_DIGITS]}` follows it"])


@contextmanager
def known_api(session: Injected) -> Iterator[bool]:
    """The API that knows the runs; False where nothing ever ran, without starting one.

    Raises PrefectServerError where the configured one does not answer, or refuses.
    """
    from flows.serving.api import answering, configured_url, prefect_api

    home = session.settings.work_dir / "prefect"
    if configured_url() is None and not (home / "prefect.db").exists():
        yield False
        return
    with prefect_api(home) as url, answering(url):
        yield True


def _assignment(text: str) -> tuple[str, Any]:
    from flows.errors import UsageError

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {text!r} is not of the form name=value, e.g. limit=3")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return name.strip(), value


def _row(run: "Run") -> tuple[str, ...]:
    reason = run.reason or ""
    if run.again is not None:
        reason += f"; {run.again[:_DIGITS]} goes on"
    return (
        run.id[:_DIGITS],
        run.started or f"{run.expected} due",
        run.deployment or run.flow,
        run.state,
        _seconds(run.duration),
        (run.snapshot or "")[:_SNAPSHOT_DIGITS],
        reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…",
    )


def _seconds(value: float | None) -> str:
    from flows.formatting import seconds

    return "" if value is None else seconds(value)


def _lines(found: "Details", url: str, commits: list["Commit"]) -> Iterator[str]:
    run = found.run
    facts = {
        "run": f"{run.id} ({run.name})",
        "flow": run.flow,
        "deployment": run.deployment,
        "state": run.state,
        "reason": run.reason,
        "goes on in": run.again,
        "started": run.started,
        "duration": _seconds(run.duration),
        "snapshot": run.snapshot,
        "store": url,
    }
    yield from columns([(name, value) for name, value in facts.items() if value])
    yield from _section("parameters", found.parameters)
    if found.tasks:
        rows = [
            (task["flow"], task["task"], task["state"], _seconds(task["seconds"]), task["message"] or "")
            for task in found.tasks
        ]
        yield from ("", "tasks", *(f"  {line}" for line in columns(rows)))
    for artifact in found.artifacts:
        yield from ("", f"{artifact['key']}: {artifact['description'] or artifact['type']}")
        yield from (f"  {line}" for line in _table(artifact["data"]))
    if commits:
        shown = [(c.sequence, c.time, c.action, " ".join(c.message.split())) for c in commits]
        yield from ("", "commits", *(f"  {line}" for line in columns(shown)))
    yield from _section("resolved parameters", found.params)
    yield from _section("settings", found.settings)


def _section(title: str, values: dict[str, Any] | None) -> Iterator[str]:
    from flows.formatting import flatten

    if values:
        yield from ("", title, *(f"  {line}" for line in columns(list(flatten(values)))))


def _table(data: Any) -> Iterator[str]:
    rows = data if isinstance(data, list) and all(isinstance(row, dict) and row for row in data) else []
    if not rows:
        return
    head = list(rows[0])
    yield from columns([tuple(row.get(name, "") for name in head) for row in rows[:_ROWS]], head)
    if len(rows) > _ROWS:
        yield f"... {len(rows) - _ROWS:,} more; --json has all"


def _commit(commit: "Commit") -> dict[str, Any]:
    return {
        "sequence": commit.sequence,
        "time": commit.time,
        "action": commit.action,
        "snapshot": commit.snapshot or None,
        "message": commit.message,
    }
