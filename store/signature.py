"""Signatures on snapshots: who vouches for exactly this set of versions, down to the last payload byte.

A signature is Ed25519 over one line of text that names its purpose and the snapshot's id. The id is the
digest of names and versions, a version is the digest of a record, the record holds the payload's digest: so
one signature covers everything, wherever and however the snapshot is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from store.backend import Backend
from store.errors import IntegrityError
from store.format import seal, sha256, signature_key, signatures_prefix, unseal
from store.keys import key_id, public_bytes

_ALGORITHM = "ed25519"
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that was found to be right: `key` is the public key in hex, `key_id` its digest."""

    snapshot: str
    key: str
    signature: str

    @property
    def key_id(self) -> str:
        """Name of the key that signed."""
        return sha256(bytes.fromhex(self.key))

    @property
    def storage_key(self) -> str:
        """Key of the object that holds it."""
        return signature_key(self.snapshot, self.key_id)

    def encode(self) -> bytes:
        """Return the record; equal signatures have equal bytes, since Ed25519 draws no random numbers."""
        return seal(
            {
                "algorithm": _ALGORITHM,
                "key": self.key,
                "signature": self.signature,
                "snapshot": self.snapshot,
            }
        )


def statement(snapshot: str) -> bytes:
    """Return what is signed; its first words keep it apart from anything else that the key may sign."""
    return f"cellar snapshot signature 1\n{snapshot}\n".encode("ascii")


def sign(snapshot: str, key: Ed25519PrivateKey) -> Signature:
    """Sign the id of a snapshot."""
    public = public_bytes(key.public_key()).hex()
    return Signature(snapshot, public, key.sign(statement(snapshot)).hex())


def put_signature(backend: Backend, signature: Signature) -> None:
    """Store a signature. The key that made it and the snapshot decide every byte, so it may be repeated."""
    backend.put(signature.storage_key, signature.encode())


def signature_keys(backend: Backend, snapshot: str) -> list[str]:
    """Return the keys of the objects that are stored as signatures on a snapshot."""
    return [item.key for item in backend.list(signatures_prefix(snapshot))]


def read_signature(backend: Backend, storage_key: str, snapshot: str) -> Signature:
    """Read one signature on `snapshot`; raises `IntegrityError` unless it is right and where it belongs."""
    return decode_signature(backend.read(storage_key, length=_MAX_BYTES), storage_key, snapshot)


def decode_signature(data: bytes, storage_key: str, snapshot: str) -> Signature:
    """Decode and check one signature; raises `IntegrityError` like `read_signature`."""
    record = unseal(data, storage_key, {"key": str, "signature": str})
    try:
        key, value = bytes.fromhex(record["key"]), bytes.fromhex(record["signature"])
        signature = Signature(snapshot, key.hex(), value.hex())
        Ed25519PublicKey.from_public_bytes(key).verify(value, statement(snapshot))
        right = signature.encode() == data and signature.storage_key == storage_key
    except (ValueError, InvalidSignature):
        right = False
    if not right:
        raise IntegrityError(
            f"{storage_key} is no signature of that key on snapshot {snapshot[:12]}; do not trust it, delete "
            "that object and have the snapshot signed again"
        )
    return signature


def read_signatures(backend: Backend, snapshot: str) -> Iterator[Signature]:
    """Yield all signatures on a snapshot; raises `IntegrityError` at the first that is not right."""
    for storage_key in signature_keys(backend, snapshot):
        yield read_signature(backend, storage_key, snapshot)


def check_signed_by(found: Iterable[Signature], key: Ed25519PublicKey, snapshot: str) -> None:
    """Raise `IntegrityError` unless one of the signatures `found` is by `key`."""
    wanted = key_id(key)
    if wanted not in {signature.key_id for signature in found}:
        raise IntegrityError(
            f"snapshot {snapshot[:12]} is not signed by key {wanted[:12]}; do not trust it as theirs, or get "
            "the copy that they signed"
        )
