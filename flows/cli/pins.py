"""Commands on pin files: what the stages left in this folder, and whether it is still in the store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cyclopts import App

from flows.cli.launch import Injected
from flows.formatting import columns, counted, size

if TYPE_CHECKING:
    from flows.pin_check import PinReport
    from flows.pins import Pin, Stage

app = App(name="pins", help="Pin files: what each stage published, for the next one and for DVC.")


@app.default
def ls(*, session: Injected) -> None:
    """List the pin files with the elements and snapshots that they name."""
    from flows.pins import read_pins

    pins = read_pins(session.settings.pins)
    found = {stage: pin.model_dump(mode="json") for stage, pin in pins.items()}
    session.emit(found, columns([row for stage, pin in pins.items() for row in _rows(stage, pin)]))


@app.command
def verify(*, session: Injected) -> None:
    """Read everything that the pin files name; exit code 5 where it is gone or damaged."""
    from flows.cli.transfer import mebibytes
    from flows.pin_check import check_pins
    from flows.pins import read_pins
    from store.errors import IntegrityError

    pins = read_pins(session.settings.pins)
    store = session.open_store()
    with mebibytes(session, "verify pins") as progress:
        report = check_pins(store, pins, progress)
    session.emit(report.to_dict(), _lines(report))
    if report.problems:
        stages = ", ".join(dict.fromkeys(problem.stage for problem in report.problems))
        raise IntegrityError(
            f"pins name what {store.url} does not hold as it was published (stages: {stages}); try "
            "`cellar verify --full --repair`, with `--from` another store or an export that has it"
        )


def _rows(stage: "Stage", pin: "Pin") -> Iterator[tuple[str, str]]:
    named = [*pin.refs, *([f"snapshot {pin.snapshot}"] if pin.snapshot else [])]
    yield from zip([stage, *[""] * (len(named) - 1)], named, strict=True)


def _lines(report: "PinReport") -> Iterator[str]:
    elements, snapshots = counted(report.elements, "element"), counted(report.snapshots, "snapshot")
    stages = counted(len(report.stages), "stage")
    yield f"pins of {stages}: {elements} and {snapshots}, {size(report.bytes_read)} read"
    for problem in report.problems:
        yield f"{problem.stage}: {problem.what}: {problem.problem}"
    if not report.problems:
        yield "everything that they name is there and intact"
