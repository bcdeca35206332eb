"""Admitting an export of unknown origin: all of it is checked before any of it can be copied."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from store.backend import Backend, open_backend
from store.backend.local import LocalBackend
from store.backend.strict_folder import StrictFolder
from store.backend.tar import TarBackend
from store.errors import InputError, IntegrityError, InvalidURL, KeyMissing, NotAStore
from store.format import EXPORT, FORMAT_KEY, unseal
from store.signature import check_signed_by
from store.store import Store
from store.transfer.check import CheckedExport, check_export
from store.verify import Progress, silent


def check_archive(
    place: str, *, keys: Sequence[Ed25519PublicKey] = (), progress: Progress = silent
) -> tuple[Store, CheckedExport]:
    """Check every byte of the tar file or folder at `place` and return it as a store that can be copied from.

    Nothing is unpacked and no link is followed. Raises `IntegrityError` for the first thing that is not as an
    export has it, or if one of `keys` has not signed the snapshot; `InputError` for a store, and where
    nothing is at `place`.
    """
    try:
        backend = _open(place)
        _refuse_store(backend)
    except (InvalidURL, NotAStore) as error:  # here it is an argument, not the address of the store at work
        raise InputError(str(error)) from error
    try:
        found = check_export(backend, progress=progress)
    except IntegrityError as error:
        named = str(error) if backend.url.partition(":")[2] in str(error) else f"in {backend.url}: {error}"
        raise IntegrityError(named) from error
    for key in keys:
        check_signed_by(found.signatures, key, found.snapshot)
    return Store(backend), found


def _open(place: str) -> Backend:
    if not place:
        raise InputError("the name of the export is empty; give what `cellar snapshot export` made")
    backend = open_backend(place)
    if isinstance(backend, LocalBackend):
        return TarBackend(backend.root) if backend.root.is_file() else StrictFolder(backend.root)
    if isinstance(backend, TarBackend):
        return backend
    raise InputError(
        f"{backend.url} is neither a tar file nor a folder; copy from there with `cellar snapshot copy`"
    )


def _refuse_store(backend: Backend) -> None:
    """Tell a store, which may hold anything, from an export, which holds one snapshot."""
    try:
        features = unseal(backend.read(FORMAT_KEY, length=4096), FORMAT_KEY, {"features": list})["features"]
    except KeyMissing as error:
        raise InputError(
            f"{backend.url} is no export, it has no {FORMAT_KEY}; name what `cellar snapshot export` made"
        ) from error
    if features != [EXPORT]:
        raise InputError(
            f"{backend.url} is a store, not an export; take a snapshot out of it with `cellar snapshot copy`"
        )
