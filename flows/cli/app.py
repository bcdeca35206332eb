"""The command `cellar` itself: its commands, the options that all of them take, and how it ends."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import App, ArgumentCollection, CoercionError, CycloptsError, Group, Parameter

from flows.cli import (
    anneal,
    ask,
    cache,
    corpus,
    demo,
    doctor,
    evaluation,
    gc,
    head,
    history,
    hold,
    host,
    larc,
    lineage,
    notify,
    pins,
    plan,
    promote,
    readout_audit,
    refs,
    replay,
    revisions,
    runs,
    serve,
    site,
    skill,
    snapshot,
    stages,
    store,
    transfer,
    trust,
    update,
    verification,
)
from flows.cli.outcome import run
from flows.cli.session import Session

_EPILOGUE = (
    "Exit codes: 0 done, 1 a bug, 2 bad input, 3 configuration, 4 not found, 5 damaged or missing data, "
    "6 storage unavailable, 7 conflict, 8 quality below a threshold, 130 interrupted."
)


def _refuse_empty_paths(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise UsageError for a path without a character, which would become the working folder."""
    for argument in arguments:
        if _holds_path(argument.hint) and any(token.value == "" for token in argument.tokens):
            from flows.errors import UsageError

            raise UsageError(f"{argument.name} is empty; give a path, or . for the working folder")


def _holds_path(hint: Any) -> bool:
    return hint is Path or any(map(_holds_path, get_args(hint)))


app = App(
    name="cellar",
    config=_refuse_empty_paths,
    help="A versioned store for language-model memories and skills, and the flows that fill and evaluate it.",
    help_epilogue=_EPILOGUE,
    version_flags=["--version"],
    version=lambda: _version(),
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
    help_format="plaintext",
)
app.command(store.init)
app.command(corpus.app)
app.command(stages.codec)
app.command(stages.memory)
app.command(stages.index)
stages.index.command(readout_audit.audit)
app.command(stages.core)
app.command(snapshot.app)
snapshot.app.command(history.diff)
snapshot.app.command(revisions.retire)
snapshot.app.command(revisions.replace)
transfer.register(snapshot.app)
trust.register(snapshot.app)
app.command(trust.keys)
app.command(evaluation.app)
app.command(skill.app)
app.command(host.app)
app.command(anneal.app)
app.command(larc.app)
larc.app.command(replay.replay)
app.command(demo.demo)
app.command(update.update)
app.command(ask.ask)
app.command(site.app)
app.command(refs.tag)
app.command(head.app)
app.command(promote.promote)
app.command(hold.app)
app.command(history.log)
app.command(lineage.lineage)
app.command(pins.app)
app.command(plan.plan)
app.command(verification.verify)
app.command(gc.gc)
app.command(serve.serve)
app.command(serve.deploy)
app.command(runs.app)
app.command(cache.app)
app.command(doctor.doctor)
app.command(notify.app)

_EVERYWHERE = Group("Options of every command", sort_key=9)
app.meta.group_parameters = _EVERYWHERE
app.meta.suppress_keyboard_interrupt = False


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    store: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
    debug: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run one command.

    Parameters
    ----------
    store
        A folder, file:/path or s3://bucket/prefix; otherwise CELLAR_STORE, or file:build/store
        (file:build/demo/store for demo and its plan).
    json
        Print the result as JSON, for machines.
    quiet
        Show no progress.
    debug
        Show the traceback of an error.
    """
    # Prefect reads these when it is imported. An error ends in one sentence of ours: its own log stays out,
    # and it reports nothing home unless somebody asked for that.
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO" if debug else "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    command, bound, injected = app.parse_args(tokens)
    session = Session(store_url=store, as_json=json, quiet=quiet, debug=debug)
    extra = {"session": session} if "session" in injected else {}
    command(*bound.args, **bound.kwargs, **extra)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; `arguments` default to the process's own."""
    given = sys.argv[1:] if arguments is None else arguments
    return run(lambda: _parse(given), given)


def _parse(arguments: list[str]) -> None:
    try:
        app.meta(arguments)
    except CycloptsError as error:
        from flows.errors import UsageError

        chain = error.command_chain or ()
        help_command = " ".join(["cellar", *chain, "--help"])
        raise UsageError(f"{_reason(error)}; see `{help_command}`") from error


def _reason(error: CycloptsError) -> str:
    """What is wrong with the arguments, without the name of a class where a time could not be read."""
    text = " ".join(str(error).split()).rstrip("., ")
    if isinstance(error, CoercionError) and error.target_type is timedelta:
        return f"{text.replace(' into timedelta', ' into a time')}; write a time as 7d, 36h or 90m"
    return text


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cellar-lm")
    except PackageNotFoundError:
        return f"unknown (running from {Path(__file__).parents[2]})"
