"""Commands on trust: make keys, sign snapshots, verify a snapshot and who signed it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.launch import Injected
from flows.cli.transfer import mebibytes
from flows.formatting import counted

if TYPE_CHECKING:
    from store.trust import SnapshotReport

PASSPHRASE = "CELLAR_KEY_PASSPHRASE"  # noqa: S105 - the name of the variable, not what is in it
"""Variable that opens an encrypted private key. It is no setting: settings are recorded with every run."""

keys = App(name="key", help="Key pairs that sign snapshots.")


def register(app: App) -> None:
    """Add these commands to the commands on snapshots."""
    app.command(sign)
    app.command(verify)


@keys.command
def generate(
    path: Path, /, *, encrypt: Annotated[bool, Parameter(negative="")] = False, session: Injected
) -> None:
    """Make an Ed25519 key pair: PATH is the private key, to keep, and PATH.pub the public one, to give away.

    The private key is encrypted if CELLAR_KEY_PASSPHRASE is set.

    Parameters
    ----------
    path
        File of the private key, which only its owner can read.
    encrypt
        Ask for a passphrase and encrypt the private key with it.
    """
    from store.keys import key_id, write_key_pair

    passphrase = None
    if encrypt or os.environ.get(PASSPHRASE):
        passphrase = _ask(path, again=True)
    beside, public = write_key_pair(path, passphrase=passphrase)
    shown = {"private": str(path), "public": str(beside), "key": key_id(public)}
    session.emit(
        shown | {"encrypted": passphrase is not None},
        [
            f"private key {path}: keep it",
            f"public key  {beside}: give it away",
            f"key id      {shown['key']}",
        ],
    )


def sign(snapshot: str, /, *, key: Path, session: Injected) -> None:
    """Sign a snapshot: vouch for exactly these versions, down to the last payload byte.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    key
        The private key; if it is encrypted, CELLAR_KEY_PASSPHRASE or a prompt opens it.
    """
    from store.keys import read_private_key
    from store.trust import sign_snapshot

    private = read_private_key(key, lambda: _ask(key))
    store = session.open_store()
    signature = sign_snapshot(store, store.snapshot(snapshot), private)
    session.emit(
        {"snapshot": signature.snapshot, "key": signature.key_id},
        [f"signed snapshot {signature.snapshot} with key {signature.key_id}"],
    )


def verify(
    snapshot: str,
    /,
    *,
    key: Annotated[list[Path] | None, Parameter(name="--key", negative="", consume_multiple=False)] = None,
    full: Annotated[bool, Parameter(name="--full", negative="--quick")] = True,
    session: Injected,
) -> None:
    """Check that a snapshot is what its id says, byte by byte, and who signed it; exit code 5 where not.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    key
        A public key whose holder must have signed the snapshot; may be given several times.
    full
        Read every payload (--quick: only rows, sizes and signatures).
    """
    from store.errors import IntegrityError
    from store.keys import key_id, read_public_key
    from store.trust import verify_snapshot

    wanted = [read_public_key(path) for path in key or ()]
    store = session.open_store()
    opened = store.snapshot(snapshot)
    with mebibytes(session, "verify") as progress:
        report = verify_snapshot(store, opened, keys=wanted, full=full, progress=progress)
    session.emit(report.to_dict(), _lines(report, {key_id(public) for public in wanted}))
    if not report.ok:
        more = len(report.findings) - 1
        others = f", and {more:,} more" if more else ""
        raise IntegrityError(
            f"snapshot {report.snapshot[:12]} cannot be trusted: {report.findings[0].problem}{others}"
        )


def _lines(report: "SnapshotReport", wanted: set[str]) -> Iterator[str]:
    depth = f"{report.bytes_read:,} payload bytes read" if report.full else "payloads not read"
    elements, packs = counted(report.elements, "element"), counted(report.packs, "pack")
    yield f"snapshot {report.snapshot}: {elements} in {packs}; {depth}"
    for signer in report.signers:
        known = "the key that was asked for" if signer in wanted else "a key that was not asked for"
        yield f"signed by {signer}, {known}"
    if not report.signers:
        yield "not signed"
    for finding in report.findings:
        yield f"{finding.key}: {finding.problem}"


def _ask(path: Path, *, again: bool = False) -> bytes:
    """The passphrase of a private key, from the environment or whoever sits there."""
    from getpass import getpass

    from flows.errors import SettingsError, UsageError

    given = os.environ.get(PASSPHRASE)
    if given:
        return given.encode()
    if not sys.stdin.isatty():
        raise SettingsError(f"{path} needs a passphrase and nobody is there to ask; set {PASSPHRASE}")
    typed = getpass(f"Passphrase of {path}: ")
    if again and getpass("The same again: ") != typed:
        raise UsageError("the two passphrases differ; run the command again")
    if not typed:
        raise UsageError("an empty passphrase protects nothing; run the command again and type one")
    return typed.encode()
