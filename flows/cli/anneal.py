"""Commands on shadows: write a text into one, keep what generalises, look at it, merge it into its host."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from flows.cli.anneal_figures import alpha_lines, cumulate_shadows, evaluate_shadow
from flows.cli.evaluation import RESULTS
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.formatting import columns, counted

if TYPE_CHECKING:
    from flows.params import Params
    from store import Row, Store

app = App(name="anneal", help="ANNEAL: texts written into shadows of a frozen host, and how much is kept.")

Out = Annotated[Path, Parameter(help="Folder for anneal.json.")]
Source = Annotated[
    Path | None,
    Parameter(help="A text file or a folder of them, instead of shadow.domain of the parameters."),
]
Name = Annotated[str | None, Parameter(help="Names the elements, instead of shadow.name of the parameters.")]


@app.command
def write(
    *,
    source: Source = None,
    name: Name = None,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Write a text into shadows at full strength: each chunk is scored, then learned in one step.

    What is held out for the search, its guard and the report is taken aside first. An interrupted text goes
    on where it stopped.
    """
    chosen = chosen_params(params, set_, source, name)
    with orchestration(session, session.settings, check=lambda store: _host(store, chosen)) as settings:
        from flows.write_shadow import write_shadow

        made = write_shadow(chosen, settings)
    store = session.open_store()
    row = shadow_row(store, made)
    session.emit(_record(row), _lines(row))


@app.command
def consolidate(
    *,
    source: Source = None,
    name: Name = None,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Search how much of each layer's shadow is kept: gain on held-out text against harm to retention probes.

    A text that is not written yet is written first. Where text that the search never saw shows no gain, all
    alphas are 0 and the host stays what it is.
    """
    chosen = chosen_params(params, set_, source, name)
    with orchestration(session, session.settings, check=lambda store: _host(store, chosen)) as settings:
        from flows.consolidate_shadow import consolidate_shadow

        made = consolidate_shadow(chosen, settings)
    row = shadow_row(session.open_store(), made)
    session.emit(_record(row), _lines(row))


@app.command(name="eval")
def evaluate(
    *,
    source: Source = None,
    name: Name = None,
    out: Out = RESULTS,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Evaluate a shadow on sealed text and sealed probes, and write anneal.json into a folder.

    Beside it stand its full strength and the searches of anneal.sealed.baselines, each at the same budget.
    What is not written or consolidated yet is made first.
    """
    chosen = chosen_params(params, set_, source, name)
    evaluate_shadow(chosen, session, out, check=lambda store: _host(store, chosen))


@app.command
def cumulate(*, out: Out = RESULTS, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Learn the domains of anneal.domains one after another, and measure what the host forgets of each.

    Every domain is written and consolidated on top of those before it, as shadow/<name>.<domain>; after each,
    the sealed text of all of them is scored. Writes cumulative.json into a folder.
    """
    from flows.params import load_params
    from tasks.anneal import stages

    chosen = load_params(params, set_ or ())
    stages(chosen.shadow, chosen.anneal)  # too few domains are said before anything is started
    cumulate_shadows(chosen, session, out, check=lambda store: _host(store, chosen))


@app.command
def show(name: str | None = None, /, *, session: Injected) -> None:
    """List the shadows of the store, or show the layers of one.

    Parameters
    ----------
    name
        Which one, e.g. domain or domain.written.
    """
    from tasks.shadows import find_shadow

    store = session.open_store()
    if name is not None:
        row = shadow_row(store, str(find_shadow(store, name)))
        session.emit(_record(row), _lines(row))
        return
    newest = {row.ref.name: row for row in store.catalog().rows("shadow")}
    rows = [(row.ref.name, row.ref.version[:12], *_in_short(row)) for _, row in sorted(newest.items())]
    session.emit(
        [_record(row) for _, row in sorted(newest.items())], columns(rows) if rows else ["no shadows"]
    )


@app.command
def attach(
    *names: str,
    text: str,
    tokens: int = 48,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Continue a text with shadows on the host, and once they are detached again; greedy, nothing is written.

    Parameters
    ----------
    names
        Which shadows, e.g. domain; several are attached in order.
    text
        What is continued.
    tokens
        How far.
    """
    from flows.errors import UsageError
    from flows.hosts import open_host
    from flows.params import load_params
    from flows.watch import watching
    from tasks.anneal import before_and_after

    if not names or not text.strip() or not 0 < tokens <= 1_024:
        raise UsageError('name shadows, and give --text "..." and up to 1024 --tokens')
    chosen = load_params(params, set_ or ())
    store = session.open_store()
    with watching(session.progress):
        host = open_host(session.settings, store, chosen.host)
        refs, before, after = before_and_after(store, host, names, text, tokens=tokens)
    made = {"shadows": [str(ref) for ref in refs], "text": text, "attached": after, "detached": before}
    told = (
        f"{name:<9} {' '.join(found.split())}" for name, found in (("attached", after), ("detached", before))
    )
    lines = [*(f"shadow    {ref}" for ref in refs), *told]
    session.emit(made, lines)


@app.command
def merge(*names: str, out: Path, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Write the host with shadows in its weights into a new folder, which transformers loads.

    Parameters
    ----------
    names
        Which shadows, e.g. domain; several are added.
    out
        The new folder.
    """
    from flows.errors import UsageError
    from flows.hosts import open_host
    from flows.params import load_params
    from flows.watch import watching
    from tasks.hosts.step import host_folder
    from tasks.shadows.step import merge_shadows

    if not names:
        raise UsageError("which shadows? For example: cellar anneal merge domain --out build/merged")
    chosen = load_params(params, set_ or ())
    store, settings = session.open_store(), session.settings
    with watching(session.progress):
        host = open_host(settings, store, chosen.host)
        folder = host_folder(settings.hosts, host.ref)
        with session.progress("merge", "files") as progress:
            refs, changed = merge_shadows(store, host, folder, names, out, progress=progress)
    lines = [*(f"shadow  {ref}" for ref in refs), f"host    {host.ref}"]
    lines.append(f"wrote   {out}, {counted(changed, 'layer')}")
    made = {"shadows": [str(ref) for ref in refs], "host": str(host.ref), "out": str(out), "changed": changed}
    session.emit(made, lines)


def chosen_params(
    params: Path | None, set_: list[str] | None, source: Path | None, name: str | None
) -> "Params":
    """The parameters, with the text and the name of the command line in place of theirs."""
    from flows.params import load_params, with_text

    return load_params(params, with_text(set_ or (), source, name))


def shadow_row(store: "Store", ref: str) -> "Row":
    """What the store knows of a shadow that was just published or found."""
    from store import Ref

    row = store.catalog().get(Ref.parse(ref).version)
    assert row is not None
    return row


def _host(store: "Store", params: "Params") -> None:
    """Raise `UnknownHost` where the store has no host of that name."""
    from flows.hosts import host_ref

    host_ref(store, params.host)


def _record(row: "Row") -> dict[str, Any]:
    return {"shadow": str(row.ref), "host": row.provenance.get("host", ""), **dict(row.facts)}


def _in_short(row: "Row") -> tuple[str, str]:
    layers, alphas = row.facts.get("layers") or [], row.facts.get("alphas") or []
    return counted(len(layers), "layer"), "alpha " + " ".join(f"{alpha:.2f}" for alpha in alphas)


def _lines(row: "Row") -> list[str]:
    facts = row.facts
    lines = [f"shadow   {row.ref}", f"host     {row.provenance.get('host', '')}"]
    if "chunks" in facts:
        lines.append(f"learned  {counted(facts['chunks'], 'chunk')}")
    if facts.get("stopped"):
        lines.append(f"stopped  {facts['stopped']}")
    for purpose in ("selection", "guard"):
        if isinstance(found := facts.get(purpose), dict):
            lines.append(_figures(purpose, found))
            lines.append(_figures("  at alpha 1", facts[f"{purpose}_naive"]))
    if facts.get("fell_back"):
        lines.append("kept     nothing: the guard text showed no gain that is worth its harm")
    columns_ = (facts.get(name) or [] for name in ("layers", "alphas", "norms"))
    layers = [
        {"layer": layer, "alpha": alpha, "norm": norm} for layer, alpha, norm in zip(*columns_, strict=False)
    ]
    return [*lines, *alpha_lines(layers)]


def _figures(title: str, found: dict[str, float]) -> str:
    gain, rise, drift = (f"{found[name]:+.4f}" for name in ("gain", "rise", "drift"))
    return f"{title:<12} gain {gain}  rise {rise}  drift {drift} nats per token"
