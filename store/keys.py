"""Ed25519 key files: PEM as OpenSSL writes it, the private part closed to others and optionally encrypted.

Nothing here puts bytes of a private key or of a passphrase into an error, a log or a record.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from store.backend.local import storage_error
from store.errors import InputError
from store.format import sha256

_MAX_BYTES = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger(__name__)


def public_bytes(key: Ed25519PublicKey) -> bytes:
    """Return the 32 bytes of a public key."""
    return key.public_bytes_raw()


def key_id(key: Ed25519PublicKey) -> str:
    """Return the name of a key: the SHA-256 of its 32 public bytes."""
    return sha256(public_bytes(key))


def write_key_pair(path: Path, *, passphrase: bytes | None = None) -> tuple[Path, Ed25519PublicKey]:
    """Make a key pair: `path` is the private key (mode 0600), `path`.pub the public one, which is returned.

    Raises `InputError` if one of the files exists or cannot be made, and `StorageUnavailable` if the disk is
    full or fails; no file that was made is there then, so that the same call can be repeated.
    """
    if not path.name:
        raise InputError(f"{path} is no name for a key; give the file that the private key goes to")
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    protection = (
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    )
    secret = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    shown = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    beside = path.with_name(f"{path.name}.pub")
    _write(path, secret, 0o600)
    try:
        _write(beside, shown, 0o644)
    except BaseException:  # an interrupt as well: half a pair would be in the way of the next attempt
        path.unlink(missing_ok=True)
        raise
    return beside, public


def read_private_key(path: Path, passphrase: Callable[[], bytes]) -> Ed25519PrivateKey:
    """Read a private key, asking for the passphrase if the file is encrypted; `InputError` if it is no key.

    Warns if others than the owner may read the file.
    """
    data = _read(path)
    key: object = None
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except TypeError:  # cryptography's word for "it is encrypted"
        key = _decrypt(data, path, passphrase())
    except (ValueError, UnsupportedAlgorithm):
        pass  # said below, without a cause that might quote the file
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path} is not an Ed25519 private key in PEM; make one with `cellar key generate`")
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and mode & _OTHERS:
        _log.warning("others can read the private key %s; close it with `chmod 600 %s`", path, path)
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read a public key; `InputError` if the file is none."""
    key: object = None
    data = _read(path)
    with suppress(ValueError, UnsupportedAlgorithm):
        key = serialization.load_pem_public_key(data)
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path} is not an Ed25519 public key in PEM; give the .pub file of the pair")
    return key


def _decrypt(data: bytes, path: Path, passphrase: bytes) -> object:
    try:
        return serialization.load_pem_private_key(data, password=passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without its cause: nothing that was made from key or passphrase belongs into a traceback.
        raise InputError(f"the passphrase does not open {path}; try again with the right one") from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise InputError(
            f"cannot read the key {path}: {os.strerror(error.errno or 0)}; check the name and the owner"
        ) from error


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    except FileExistsError as error:
        raise InputError(f"{path} exists and keys are never overwritten; choose another name") from error
    except OSError as error:
        raise InputError(
            f"cannot write the key {path}: {os.strerror(error.errno or 0)}; choose another place"
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error(error, "write", path.name, f"file:{path.parent}") from error
        raise
