"""How a command runs a flow: parameters and settings in, a Prefect API at hand, progress on this terminal."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.pins import Pin, Stage
    from flows.settings import Settings
    from flows.watch import Announcer
    from store import Store

Injected = Annotated[Session, Parameter(parse=False)]
Flag = Parameter(negative="")
ParamsFile = Annotated[
    Path | None, Parameter(help="Parameter file; otherwise params.yaml where there is one.")
]
Set = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        consume_multiple=False,
        help="Override a parameter, e.g. --set codec.steps=800; may be repeated.",
    ),
]


@contextmanager
def orchestration(
    session: Session,
    settings: "Settings",
    announcer: "Announcer | None" = None,
    check: "Callable[[Store], object] | None" = None,
) -> Iterator["Settings"]:
    """Everything a flow of this process needs: folders, a store, a Prefect API, somebody who watches.

    What is wrong with settings or store, and what `check` raises of the store, is said before the seconds
    that Prefect takes to be imported and started.
    """
    from flows.notices.notify import load_notifications
    from flows.settings import make_folder
    from store import Store

    load_notifications()  # a bad address is said now, not when there is something to tell
    make_folder(settings.work_dir, "CELLAR_WORK_DIR")
    make_folder(settings.pins, "CELLAR_PINS")
    store = Store.open_or_create(settings.store, made=session.made_store)
    if check is not None:
        with session.progress("look at what is there", ""):
            check(store)
    with ExitStack() as stack:
        with session.progress("start Prefect", ""):
            from flows.serving.api import configured_url, prefect_api
            from flows.serving.lock import serving
            from flows.watch import watching
            from flows.workers.gpu import provide_limit

            watcher = watching(session.progress, announcer) if announcer else watching(session.progress)
            home = settings.work_dir / "prefect"
            shared = configured_url() is not None or serving(home) is not None
            stack.enter_context(watcher)
            stack.enter_context(prefect_api(home))
            provide_limit(settings, owner=not shared)
        stack.enter_context(session.progress("prepare", ""))  # what the flow loads before it counts anything
        yield settings


@contextmanager
def stage(
    session: Session, params_file: Path | None, overrides: Sequence[str] | None, *needs: "Stage"
) -> Iterator["Callable[[Callable[..., Pin]], None]"]:
    """What runs the flow of one stage on parameters, settings and the pins it needs, and writes its own pin.

    What is wrong with parameters or pins is said before the block, which imports the flow, is entered.
    """
    from flows.params import load_params
    from flows.pins import read_pin, write_pin

    params = load_params(params_file, overrides or ())
    pins = [read_pin(session.settings.pins, needed) for needed in needs]
    made: list[Pin] = []
    began = time.monotonic()
    with orchestration(session, session.settings) as settings:
        store = session.open_store()
        tip = store.tip().sequence
        yield lambda flow: made.append(flow(params, settings, *pins))
    from flows.timing import work_seconds

    [pin] = made
    spent, found = time.monotonic() - began, store.tip().sequence == tip
    work_seconds(settings.work_dir, pin.stage, [pin], spent, found=found)
    path = write_pin(settings.pins, pin)
    session.emit(pin.model_dump(mode="json"), [*pin_lines(pin), f"wrote {path}"])


def pin_lines(pin: "Pin") -> list[str]:
    """What a stage published, for people."""
    published = [(ref.name, ref.version) for ref in pin.references()]
    snapshot = [f"snapshot {pin.snapshot}"] if pin.snapshot else []
    figures = [
        (name.replace("_", " "), _shown(value))
        for name, value in pin.figures.items()
        if isinstance(value, int | float)
    ]
    return [*columns(published), *snapshot, *columns(figures)]


def _shown(value: float) -> str:
    whole = not isinstance(value, float) or (value.is_integer() and abs(value) > 1)
    return f"{value:,.0f}" if whole else f"{value:,.4f}"
