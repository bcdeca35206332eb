"""Commands on shadows: write a text into one, keep what generalises, look at it, merge it into its host."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.anneal_figures import cumulate_shadows, evaluate_shadow
from flows.cli.anneal_needs import need_domain, need_domains, need_facts, need_shadows, need_texts
from flows.cli.attached import attach, continue_text, detach, show
from flows.cli.composition_figures import evaluate_composition
from flows.cli.evaluation import RESULTS
from flows.cli.facts_figures import learn_facts
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.shadow_lines import shadow_lines, shadow_record, shadow_row
from flows.formatting import counted

if TYPE_CHECKING:
    from flows.params import Params

app = App(name="anneal", help="ANNEAL: texts written into shadows of a frozen host, and how much is kept.")

for command in (attach, detach, show):
    app.command(command)
app.command(continue_text, name="continue")

Out = Annotated[Path, Parameter(help="Folder for the figures and their page.")]
CompositionOut = Annotated[Path, Parameter(help="Folder for composition.json.")]
FactsOut = Annotated[Path, Parameter(help="Folder for facts.json.")]
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
    with orchestration(
        session, session.settings, check=lambda store: need_domain(store, chosen, session.warn)
    ) as settings:
        from flows.write_shadow import write_shadow

        made = write_shadow(chosen, settings)
    store = session.open_store()
    row = shadow_row(store, made)
    session.emit(shadow_record(row), shadow_lines(row))


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
    with orchestration(
        session, session.settings, check=lambda store: need_texts(store, chosen, session.warn)
    ) as settings:
        from flows.consolidate_shadow import consolidate_shadow

        made = consolidate_shadow(chosen, settings)
    row = shadow_row(session.open_store(), made)
    session.emit(shadow_record(row), shadow_lines(row))


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
    """Evaluate a shadow on sealed text and sealed probes, and write anneal.json and its page into a folder.

    Beside it stand its full strength and the searches of anneal.sealed.baselines, each at the same budget.
    What is not written or consolidated yet is made first.
    """
    chosen = chosen_params(params, set_, source, name)
    evaluate_shadow(chosen, session, out, check=lambda store: need_texts(store, chosen, session.warn))


@app.command
def cumulate(*, out: Out = RESULTS, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Learn the domains of anneal.domains one after another, and measure what the host forgets of each.

    Every domain is written and consolidated on top of those before it, as shadow/<name>.<domain>; after each,
    the sealed text of all of them is scored. Writes cumulative.json and its page.
    """
    from flows.params import load_params
    from tasks.anneal import stages

    chosen = load_params(params, set_ or ())
    stages(chosen.shadow, chosen.anneal)  # too few domains are said before anything is started
    cumulate_shadows(chosen, session, out, check=lambda store: need_domains(store, chosen, session.warn))


@app.command
def facts(*, out: FactsOut = RESULTS, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Teach made-up facts in a dozen framings, and in one as often as tokens allow; ask for them in others.

    Facts are drawn from facts.seed, lessons are written as texts are, each to the untouched host. Answers are
    scored beside wrong ones, and generated. Writes facts.json into a folder.
    """
    from flows.params import load_params

    chosen = load_params(params, set_ or ())
    learn_facts(chosen, session, out, check=lambda store: need_facts(store, chosen, session.warn))


@app.command
def compose(
    *names: str,
    snapshot: str | None = None,
    out: CompositionOut = RESULTS,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Continue exact strings of a snapshot's documents: host, shadows, retrieved text in the prompt, both.

    The index is asked with the words before a string, and what its first memory decodes to comes before them.
    With shadow.domain, strings that a shadow was written from are told apart. Writes composition.json.

    Parameters
    ----------
    names
        Which shadows, e.g. domain; several are attached in order.
    snapshot
        Which snapshot: its id, a tag or a head; otherwise the one that was pinned last.
    """
    from flows.errors import UsageError
    from flows.params import load_params

    if not names:
        raise UsageError("which shadows? For example: cellar anneal compose domain --snapshot head:docs")
    evaluate_composition(load_params(params, set_ or ()), session, list(names), snapshot, out)


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
    from store.paths import usable_path
    from store.transfer import check_folder_at
    from tasks.hosts import find_host
    from tasks.hosts.step import host_folder

    if not names:
        raise UsageError("which shadows? For example: cellar anneal merge domain --out build/merged")
    chosen = load_params(params, set_ or ())
    out = usable_path(out, UsageError, "--out")
    check_folder_at(out)
    store, settings = session.open_store(), session.settings
    _, refs = need_shadows(store, chosen, names)
    kept = find_host(store, chosen.host.name)
    from tasks.shadows.step import merge_shadows

    with watching(session.progress):
        host = open_host(settings, store, chosen.host, kept.ref)
        _ = host.model  # every byte of its folder, from which the weights are taken, is checked
        folder = host_folder(settings.hosts, kept.ref)
        with session.progress("merge", "files") as progress:
            changed = merge_shadows(store, host, folder, refs, out, progress=progress)
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
