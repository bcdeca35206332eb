"""Commands on LARC: train slow states on a frozen host, and evaluate what feedback gains."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.evaluation import RESULTS
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.selection_figures import evaluate_selection, training_lines

if TYPE_CHECKING:
    from flows.params import Params
    from store import Store

app = App(name="larc", help="LARC: a state on a frozen host that feedback updates and a reset restores.")

Out = Annotated[Path, Parameter(help="Folder for selection.json and selection.html.")]


@app.command
def train(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Train the slow states of every objective and seed on the host, or find them published."""
    from flows.params import load_params

    chosen = load_params(params, set_ or ())
    with orchestration(session, session.settings, check=lambda store: _host(store, chosen)) as settings:
        from flows.train_larc import train_larc

        made = train_larc(chosen, settings)
    record = [_trained(session.open_store(), text) for text in made]
    session.emit(record, training_lines(record))


@app.command(name="eval")
def evaluate(*, out: Out = RESULTS, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Seal what the slow states say about new tasks, score it, and write the figures into a folder.

    Slow states that are missing are trained first. Policies choose programs with real or sham feedback, read
    after it or after a reset; beside them stand the symbolic rule, feedback in words and untrained starts.
    """
    from flows.params import load_params

    chosen = load_params(params, set_ or ())
    evaluate_selection(chosen, session, out, check=lambda store: _host(store, chosen))


def _host(store: "Store", params: "Params") -> None:
    """Raise `UnknownHost` where the store has no host of that name."""
    from tasks.hosts import find_host

    find_host(store, params.host.name)


def _trained(store: "Store", text: str) -> dict[str, object]:
    """A slow state and what is known of its training."""
    from store import Ref

    row = store.catalog().get(Ref.parse(text).version)
    return {"residual": text, "facts": {} if row is None else dict(row.facts)}
