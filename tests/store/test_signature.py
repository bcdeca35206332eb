"""Who signed a snapshot is certain, and a verified snapshot is what its id says, byte by byte."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from store import Snapshot, Store
from store.errors import InputError, IntegrityError
from store.format import pack_key, seal, signature_key, snapshot_key, snapshot_rows_key, unseal
from store.keys import key_id, read_private_key, read_public_key, write_key_pair
from store.signature import put_signature, read_signatures, sign, statement
from store.snapshot import encode_snapshot
from store.trust import sign_snapshot, verify_snapshot
from tests.said import said
from tests.store.samples import codec, memory
from tests.store.test_copy import fill


def nobody() -> bytes:
    raise AssertionError("no passphrase is needed")


@pytest.fixture
def key(tmp_path: Path) -> Ed25519PrivateKey:
    write_key_pair(tmp_path / "key")
    return read_private_key(tmp_path / "key", nobody)


@pytest.fixture
def folder(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store"))


def test_a_signed_snapshot_is_verified_by_each_of_its_signers(store: Store, tmp_path: Path) -> None:
    snapshot = fill(store)
    publics = []
    for name in ("one", "two"):
        publics.append(write_key_pair(tmp_path / name)[1])
        for _ in range(2):
            sign_snapshot(store, snapshot, read_private_key(tmp_path / name, nobody))

    report = verify_snapshot(store, snapshot, keys=publics)

    assert report.ok
    assert report.signers == tuple(sorted(map(key_id, publics)))
    assert (report.elements, report.bytes_read, report.full) == (41, snapshot.bytes, True)
    assert len(list(store.backend.list("signatures/"))) == 2
    assert verify_snapshot(store, snapshot, keys=publics, full=False).bytes_read == 0
    assert store.verify(full=True).findings == ()


def test_a_signature_can_be_checked_without_this_program(
    folder: Store, key: Ed25519PrivateKey, tmp_path: Path
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    signature = sign_snapshot(folder, fill(folder, 1), key)
    (tmp_path / "statement").write_bytes(f"cellar snapshot signature 1\n{signature.snapshot}\n".encode())
    (tmp_path / "signature").write_bytes(bytes.fromhex(signature.signature))
    command = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin", "-in", "statement"]
    done = subprocess.run([*command, "-sigfile", "signature"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert statement(signature.snapshot) == (tmp_path / "statement").read_bytes()


def test_an_unsigned_snapshot_passes_unless_a_signer_is_asked_for(
    folder: Store, key: Ed25519PrivateKey
) -> None:
    snapshot = fill(folder, 2)

    assert verify_snapshot(folder, snapshot).signers == ()
    [finding] = verify_snapshot(folder, snapshot, keys=[key.public_key()]).findings
    assert f"is not signed by key {key_id(key.public_key())[:12]}" in finding.problem


@pytest.mark.parametrize("field", ["key", "signature", "snapshot", "algorithm", None])
def test_an_altered_signature_is_found(folder: Store, key: Ed25519PrivateKey, field: str | None) -> None:
    snapshot = fill(folder, 2)
    signature = sign_snapshot(folder, snapshot, key)
    where = signature.storage_key
    record = unseal(folder.backend.read(where), where)
    if field is None:
        folder.backend.put(where, b"x" * 100_000)
    else:
        record[field] = ("0" if record[field][0] != "0" else "1") + record[field][1:]
        folder.backend.put(where, seal(record))

    report = verify_snapshot(folder, snapshot, keys=[key.public_key()])

    assert not report.ok
    assert report.signers == ()
    assert where in {finding.key for finding in report.findings}
    with pytest.raises(IntegrityError, match=where):
        list(read_signatures(folder.backend, snapshot.id))
    sign_snapshot(folder, snapshot, key)  # whoever has the key can mend it
    assert verify_snapshot(folder, snapshot, keys=[key.public_key()]).ok


def test_a_signature_counts_only_for_its_snapshot_and_key(
    folder: Store, key: Ed25519PrivateKey, tmp_path: Path
) -> None:
    one, two = fill(folder, 2), fill(folder, 2, first=50)
    signed = sign_snapshot(folder, one, key)
    other = write_key_pair(tmp_path / "other")[1]
    for where in (signature_key(two.id, signed.key_id), signature_key(one.id, key_id(other))):
        folder.backend.put(where, signed.encode())

    assert verify_snapshot(folder, two, keys=[key.public_key()]).signers == ()
    report = verify_snapshot(folder, one, keys=[key.public_key(), other])
    assert report.signers == (signed.key_id,)
    assert [finding.key for finding in report.findings] == [
        signature_key(one.id, key_id(other)),
        snapshot_key(one.id),
    ]


def test_uppercase_hex_is_another_record(folder: Store, key: Ed25519PrivateKey) -> None:
    snapshot = fill(folder, 1)
    signature = sign_snapshot(folder, snapshot, key)
    record = unseal(signature.encode(), "signature")
    folder.backend.put(signature.storage_key, seal(record | {"key": record["key"].upper()}))
    assert not verify_snapshot(folder, snapshot).ok


def test_damaged_payloads_and_missing_packs_are_named(folder: Store, tmp_path: Path) -> None:
    snapshot = fill(folder)
    row = snapshot.get("memory/doc/00020")
    path = tmp_path / "store" / pack_key(row.pack)
    data = bytearray(path.read_bytes())
    data[row.offset + 3] ^= 1
    path.write_bytes(data)

    [finding] = verify_snapshot(folder, snapshot).findings

    assert (finding.key, finding.elements, finding.snapshots) == (
        pack_key(row.pack),
        (str(row.ref),),
        (snapshot.id,),
    )
    assert verify_snapshot(folder, snapshot, full=False).ok
    path.write_bytes(data[: row.offset])
    [cut] = verify_snapshot(folder, snapshot, full=False).findings
    assert "is cut short" in cut.problem
    path.unlink()
    [gone] = verify_snapshot(folder, snapshot).findings
    assert "is missing" in gone.problem
    assert str(row.ref) in gone.elements


def forge(folder: Store, snapshot: Snapshot, change: Callable[[list], list]) -> None:
    """Put other rows behind the snapshot's id, with right seals and digests."""
    head, table = encode_snapshot(change(snapshot.rows()))
    record = unseal(head, "head")
    folder.backend.put(snapshot_rows_key(record["rows"]), table)
    folder.backend.put(snapshot_key(snapshot.id), seal(record | {"id": snapshot.id}))


def test_rows_that_are_another_set_are_found_and_not_signed(folder: Store, key: Ed25519PrivateKey) -> None:
    snapshot = fill(folder, 3)
    signature = sign(snapshot.id, key)
    put_signature(folder.backend, signature)
    forge(folder, snapshot, lambda rows: rows[:-1])
    reopened = Store.open(folder.url)

    [finding] = verify_snapshot(reopened, reopened.snapshot(snapshot.id), keys=[key.public_key()]).findings

    assert "are not the set that its id names" in finding.problem
    with pytest.raises(IntegrityError, match="are not the set that its id names"):
        sign_snapshot(reopened, reopened.snapshot(snapshot.id), key)


def test_rows_that_describe_another_payload_are_found(folder: Store) -> None:
    from dataclasses import replace

    snapshot = fill(folder, 3)
    other = snapshot.rows()[-2]
    place = {"digest": other.digest, "offset": other.offset, "length": other.length, "pack": other.pack}
    forge(folder, snapshot, lambda rows: [*rows[:-1], replace(rows[-1], **place)])
    reopened = Store.open(folder.url)

    report = verify_snapshot(reopened, reopened.snapshot(snapshot.id), full=False)

    assert "in a way that its version denies" in report.findings[0].problem


def test_a_pair_of_keys_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        beside, public = write_key_pair(tmp_path / "key")
    finally:
        os.umask(before)

    assert beside == tmp_path / "key.pub"
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("key", "key.pub")] == [0o600, 0o644]
    assert key_id(read_public_key(beside)) == key_id(public)
    assert key_id(read_private_key(tmp_path / "key", nobody).public_key()) == key_id(public)
    for name in ("key", "other"):
        (tmp_path / "other.pub").touch()
        with pytest.raises(InputError, match="exists and keys are never overwritten"):
            write_key_pair(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.pub", "other.pub"]
    with pytest.raises(InputError, match="cannot write the key"):
        write_key_pair(tmp_path / "nowhere" / "key")


def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path) -> None:
    _, public = write_key_pair(tmp_path / "key", passphrase=b"open sesame")

    assert key_id(read_private_key(tmp_path / "key", lambda: b"open sesame").public_key()) == key_id(public)
    with pytest.raises(InputError, match="the passphrase does not open") as caught:
        read_private_key(tmp_path / "key", lambda: b"open barley")
    assert caught.value.__cause__ is None
    assert "barley" not in str(caught.value)


def test_others_access_to_a_private_key_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_key_pair(tmp_path / "key")
    with caplog.at_level(logging.WARNING):
        read_private_key(tmp_path / "key", nobody)
        assert said(caplog, "store") == []
        (tmp_path / "key").chmod(0o640)
        read_private_key(tmp_path / "key", nobody)
    assert f"others can read the private key {tmp_path}/key; close it with `chmod 600" in caplog.text


def test_what_is_no_such_key_is_refused(tmp_path: Path) -> None:
    write_key_pair(tmp_path / "key")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "cut").write_bytes((tmp_path / "key").read_bytes()[:-40])
    (tmp_path / "ec").write_bytes(
        generate_private_key(SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    for name in ("text", "cut", "ec", "key.pub"):
        with pytest.raises(InputError, match="is not an Ed25519 private key in PEM") as caught:
            read_private_key(tmp_path / name, nobody)
        assert caught.value.__cause__ is None
    for name in ("text", "cut", "ec", "key"):
        with pytest.raises(InputError, match="is not an Ed25519 public key in PEM"):
            read_public_key(tmp_path / name)
    with pytest.raises(InputError, match=r"cannot read the key .*none: No such file"):
        read_public_key(tmp_path / "none")


def test_signing_needs_elements_only_once(folder: Store, key: Ed25519PrivateKey) -> None:
    """Ed25519 draws no random numbers, so the same key and snapshot give the same record everywhere."""
    snapshot = folder.pin(folder.publish([codec(), memory(1)], message="m"), message="p")
    assert sign_snapshot(folder, snapshot, key).encode() == sign(snapshot.id, key).encode()
